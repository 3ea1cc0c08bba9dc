// check=interp on kernels given as functions: right ones pass, a wrong one is named with what it computes and where.
#include "driver/interp_check.h"

#include <cmath>

#include "driver/compile.h"
#include "ir/graph/text.h"
#include "ir/plan/text.h"
#include "unit/catch.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;
using runtime::KernelBody;

namespace {

const char* const two_kernels = R"(graph @f(%x: f32[8, 4], %w: f32[4, 4]) {
  %0 = add(%x, 1.0) from "model.py":3 "first" "aten.add.Tensor"
  %1: f32[8, 4] = extern "aten::mm"($0, $1) with (%0, %w) planned_out from "model.py":4 "" "aten.mm.default"
  %2 = mul(%1, 3.0) from "model.py":5 "second" "aten.mul.Tensor"
  return %2
}
)";

// out[i] = f(in[i], i) over 32 elements.
template <class F>
KernelBody pointwise(F f) {
  return [f](std::span<void* const> buffers, std::span<const int64_t>, int64_t) {
    // In place where there is one buffer only.
    for (int i = 0; i < 32; ++i) static_cast<float*>(buffers.back())[i] = f(static_cast<const float*>(buffers[0])[i], i);
  };
}
const KernelBody add_one_right = pointwise([](float x, int) { return x + 1; });
const KernelBody triple_right = pointwise([](float x, int) { return x * 3; });
KernelBody triple_wrong_at(int wrong) {
  return pointwise([wrong](float x, int i) { return x * (i == wrong ? 3.5f : 3.0f); });
}

struct Checked {
  runtime::PlainHost host;
  driver::Compilation compilation;
  std::vector<std::string> notes;

  Checked(const std::string& text, std::vector<KernelBody> bodies) {
    driver::Request request;
    request.graph = graph::parse(text);
    request.targets = cpu_target("x86-64-v3", 1);
    request.host = &host;
    request.make_provider = [&](const plan::Plan& plan, const Targets&) {
      REQUIRE(plan.kernels.size() == bodies.size());
      return std::make_shared<runtime::FunctionProvider>(bodies);
    };
    compilation = driver::compile(std::move(request));
  }

  // What the check says: "" when all is well.
  std::string run(driver::InterpLimits limits = {}, std::vector<std::vector<int64_t>> sizes = {{8, 4}, {4, 4}}) {
    driver::InterpCheck check(
        Options(), [this](std::string note) { notes.push_back(std::move(note)); }, limits);
    std::vector<runtime::Value> inputs;
    for (const auto& size : sizes) inputs.emplace_back(runtime::make_tensor(host, size));
    try {
      compilation.executable->run(host, std::move(inputs), {.check_inputs = true, .observer = &check});
    } catch (const KernelMismatch& mismatch) {
      return mismatch.what();
    }
    return "";
  }
};

}  // namespace

TEST_CASE("check=interp passes right kernels", "[driver][check]") { CHECK(Checked(two_kernels, {add_one_right, triple_right}).run() == ""); }

TEST_CASE("check=interp names the first wrong kernel", "[driver][check]") {
  const std::string text = Checked(two_kernels, {add_one_right, triple_wrong_at(6)}).run();
  CHECK_THAT(text, mentions("kernel k1_mul"));
  CHECK_THAT(text, mentions("aten.mul.Tensor (model.py:5, second)"));
  CHECK_THAT(text, mentions("f32[8, 4]: 1 of 32 elements differ"));
  CHECK_THAT(text, mentions("at [1, 2]"));
  CHECK_THAT(text, mentions("at step"));  // the executable says which
  const std::string both = Checked(two_kernels, {pointwise([](float x, int) { return x; }), triple_wrong_at(6)}).run();
  CHECK_THAT(both, mentions("kernel k0_add"));
}

TEST_CASE("check=interp does not know how the machine approximates", "[driver][check]") {
  const char* const text = "graph @f(%x: f32[8, 4]) {\n  %0 = log_approx(%x)\n  return %0\n}\n";
  const auto logarithm = [](float error) { return pointwise([error](float x, int) { return std::log(x) + error; }); };
  CHECK(Checked(text, {logarithm(0.125f)}).run({}, {{8, 4}}) == "");
  CHECK(Checked(text, {logarithm(std::nanf(""))}).run({}, {{8, 4}}) != "");
}

TEST_CASE("check=interp sees what a kernel reads before it is written over in the arena", "[driver][check]") {
  const std::string text = R"(graph @f(%x: f32[8, 4], %w: f32[4, 4]) {
  %0: f32[8, 4] = extern "aten::mm"($0, $1) with (%x, %w) planned_out
  %1 = mul(%0, 3.0)
  %2: f32[8, 4] = extern "aten::mm"($0, $1) with (%1, %w) planned_out
  return %2
}
)";
  Checked right(text, {triple_right});
  CHECK(plan::print(right.compilation.executable->plan()).find("reuse @0 as @1") != std::string::npos);
  CHECK(right.run() == "");
  CHECK_THAT(Checked(text, {triple_wrong_at(6)}).run(), mentions("1 of 32 elements differ"));
}

TEST_CASE("check=interp computes the first and last points of large launches", "[driver][check]") {
  const driver::InterpLimits few{.points = 8, .row_points = 64};
  for (int wrong : {0, 3, 28, 31}) {
    Checked checked(two_kernels, {add_one_right, triple_wrong_at(wrong)});
    CHECK_THAT(checked.run(few), mentions("kernel k1_mul"));
    CHECK(checked.notes.empty());
  }
  CHECK(Checked(two_kernels, {add_one_right, triple_wrong_at(16)}).run(few) == "");
}

TEST_CASE("check=interp says which rows are too long for it", "[driver][check]") {
  const char* const sum = R"(graph @f(%x: f32[2, 100]) {
  %0 = reduce<sum, dims=[1]>(%x)
  return %0
}
)";
  const KernelBody rows = [](std::span<void* const> buffers, std::span<const int64_t>, int64_t) {
    for (int i = 0; i < 2; ++i) {
      float total = 0;
      for (int j = 0; j < 100; ++j) total += static_cast<const float*>(buffers[0])[100 * i + j];
      static_cast<float*>(buffers[1])[i] = total;
    }
  };
  Checked checked(sum, {rows});
  CHECK(checked.run({}, {{2, 100}}) == "");
  CHECK(checked.notes.empty());
  CHECK(checked.run({.points = 8, .row_points = 50}, {{2, 100}}) == "");
  REQUIRE(checked.notes.size() == 1);
  CHECK_THAT(checked.notes[0], mentions("k0_sum was not checked: a row of 100 points"));
}

TEST_CASE("check=interp finds stores that a kernel should not make", "[driver][check]") {
  const char* const gap = R"(plan @gap for cpu (@x: f32[4] bytes (16)) {
  buffer @y: f32[8] bytes (32) standalone
  kernel @k0_half on cpu (f32 read, f32 written) symbols [] where 0 <= i0 <= 3 {
    index_limit (4) always_index32 bytes_read 16 bytes_written 16
    region @k0_half over i0 < 4 {
      %0 = load @0[i0] at (i0) vector  ; (i0)
      store @1[i0] = %0 at (i0) vector  ; (i0)
    }
    mapping cpu_pointwise space [i0] vector_width 4 chunk 4
    row_loop [%0, %1]
  }
  allocate @y
  launch @k0_half(@x, @y) symbols [] grid [1, 1]
  return @y
}
)";
  for (const int count : {4, 5}) {
    const KernelBody copy = [count](std::span<void* const> buffers, std::span<const int64_t>, int64_t) {
      for (int i = 0; i < count; ++i) static_cast<float*>(buffers[1])[i] = static_cast<const float*>(buffers[0])[i % 4];
    };
    runtime::PlainHost host;
    const runtime::Executable executable(plan::parse(gap), std::make_shared<runtime::FunctionProvider>(std::vector<KernelBody>{copy}), host);
    driver::InterpCheck check(Options(), [](std::string) {});
    std::vector<runtime::Value> inputs;
    inputs.emplace_back(runtime::make_tensor(host, {4}));
    std::string said;
    try {
      executable.run(host, std::move(inputs), {.check_inputs = true, .observer = &check});
    } catch (const KernelMismatch& mismatch) {
      said = mismatch.what();
    }
    if (count == 4)
      CHECK(said == "");
    else
      CHECK_THAT(said, mentions("kernel k0_half changes element 4 of @y"));
  }
}
