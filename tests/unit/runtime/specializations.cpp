// Which kernel a call launches: specializations by the call's sizes, others by addresses; and what that choice costs.
#include <chrono>

#include "runtime/executable.h"
#include "unit/catch.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;
using namespace cxxinductor::runtime;
using Kind = plan::Buffer::Kind;

namespace {

KernelBody writes(float value) {
  return [value](std::span<void* const> buffers, std::span<const int64_t>, int64_t grid) {
    static_cast<float*>(buffers[1])[0] = value + static_cast<float>(grid) / 1000;
  };
}

// y[0] = the number of the kernel that ran, and its grid.
PlanBuilder numbered(int launches = 1) {
  PlanBuilder b;
  const auto x = b.input("x", {s0});
  const auto y = b.buffer("y", Kind::Standalone, {s0});
  b.plan.assumptions.set_range("s0", {1, 1000});
  std::vector<plan::KernelId> kernels;
  for (const char* name : {"k_any", "k_short_multiple", "k_short", "k_multiple"}) kernels.push_back(b.kernel(name, 2, {false, true}, {"n"}));
  b.plan.steps.emplace_back(plan::Allocate{y});
  for (int i = 0; i < launches; ++i) {
    b.launch(kernels[0], {x, y}, {s0}, 1);
    sym::Assumptions when_short, when_multiple, both;
    when_short.set_range("s0", {1, 64});
    when_multiple.set_divisor("s0", 8);
    auto& launch = std::get<plan::Launch>(b.plan.steps.back());
    launch.specializations = {{kernels[1], 2, joined(when_short, when_multiple)}, {kernels[2], 3, when_short}, {kernels[3], 4, when_multiple}};
  }
  b.output(y);
  return b;
}

std::shared_ptr<FunctionProvider> numbered_kernels() {
  return std::make_shared<FunctionProvider>(std::vector<KernelBody>{writes(0), writes(1), writes(2), writes(3)});
}

double run_with(const Executable& executable, PlainHost& host, int64_t size) {
  std::vector<Value> inputs;
  inputs.emplace_back(make_tensor(host, {size}));
  return numbers_of(executable.run(host, std::move(inputs)).at(0).tensor).at(0);
}

}  // namespace

TEST_CASE("a call launches the first specialization whose properties its sizes have", "[runtime]") {
  PlainHost host;
  const Executable executable(numbered().plan, numbered_kernels(), host);
  CHECK(run_with(executable, host, 64) == Approx(1.002));
  CHECK(run_with(executable, host, 63) == Approx(2.003));
  CHECK(run_with(executable, host, 800) == Approx(3.004));
  CHECK(run_with(executable, host, 801) == Approx(0.001));
}

TEST_CASE("the launch's own kernel serves until the specialization is there", "[runtime]") {
  PlainHost host;
  const auto kernels = numbered_kernels();
  kernels->late = true;
  const Executable executable(numbered().plan, kernels, host);
  CHECK(run_with(executable, host, 64) == Approx(0.001));
  kernels->late = false;
  CHECK(run_with(executable, host, 64) == Approx(1.002));
}

TEST_CASE("misaligned inputs are read from aligned copies until their kernel is there", "[runtime]") {
  PlainHost host;
  PlanBuilder b;
  const auto x = b.input("x", {s0});
  const auto y = b.buffer("y", Kind::Standalone, {s0});
  b.plan.assumptions.set_range("s0", {1, 1000});
  const auto k = b.kernel("k", 2, {false, true}, {"n"});
  // Addresses matter on GPUs alone: the kernel says that it is one of theirs, and is none.
  b.plan.kernels[k].params[0].aligned = true;
  b.plan.kernels[k].device = {DeviceType::Cuda, 0};
  b.plan.steps.emplace_back(plan::Allocate{y});
  b.launch(k, {x, y}, {s0}, s0);
  b.output(y);
  bool misaligned = false;
  const auto kernels =
      std::make_shared<FunctionProvider>(std::vector<KernelBody>{[&](std::span<void* const> buffers, std::span<const int64_t> symbols, int64_t grid) {
        misaligned = (reinterpret_cast<uintptr_t>(buffers[0]) & 15u) != 0;
        add_one(buffers, symbols, grid);
      }});
  const Executable executable(b.plan, kernels, host);
  for (const bool late : {true, false}) {
    kernels->late = late;
    const TensorRef whole = make_tensor(host, {33});
    std::vector<double> expected = numbers_of(whole);
    expected.erase(expected.begin());
    for (double& e : expected) e += 1;
    const std::array<int64_t, 1> size{32}, stride{1};
    std::vector<Value> inputs;
    inputs.emplace_back(host.alias(whole, static_cast<float*>(whole.data) + 1, DType::F32, size, stride));
    CHECK(numbers_of(executable.run(host, std::move(inputs)).at(0).tensor) == expected);
    CHECK(misaligned == !late);
    CHECK(kernels->last_variant.vectorized == late);
  }
}

// ./test_runtime "[benchmark]" prints nanoseconds a launch: ten thousand launches with three specializations each, less as many
// without.
TEST_CASE("what the choice of a kernel costs", "[.][benchmark]") {
  constexpr int launches = 10000;
  PlainHost host;
  PlanBuilder with = numbered(launches), without = numbered(launches);
  for (plan::Step& step : without.plan.steps)
    if (auto* launch = std::get_if<plan::Launch>(&step)) launch->specializations.clear();
  const Executable chooses(with.plan, numbered_kernels(), host), plain(without.plan, numbered_kernels(), host);
  const auto nanoseconds = [&](const Executable& executable, int64_t size) {
    double best = 1e18;
    for (int i = 0; i < 50; ++i) {
      const auto start = std::chrono::steady_clock::now();
      run_with(executable, host, size);
      best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
    }
    return best / launches;
  };
  for (const int64_t size : {64, 63, 800, 801})
    std::printf("size %4d: %5.1f ns a launch with a choice of four kernels, %5.1f without\n", static_cast<int>(size), nanoseconds(chooses, size),
                nanoseconds(plain, size));
}
