// Memory of plans: results in place of what dies, the order of steps, what goes where, and what all of it holds at most.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "interp/interp.h"
#include "ir/plan/memory.h"
#include "ir/plan/verify.h"
#include "schedule/plan/order.h"
#include "schedule/plan/placement.h"
#include "unit/catch.h"
#include "unit/make_plan.h"
#include "unit/schedule/plan_programs.h"

namespace cxxinductor::schedule::test {
namespace {

// "a>b" for each reuse, in order.
std::vector<std::string> reuses(const plan::Plan& plan) {
  std::vector<std::string> found;
  for (const plan::Step& step : plan.steps)
    if (const auto* reuse = std::get_if<plan::Reuse>(&step)) found.push_back(plan.buffers[reuse->from].name + ">" + plan.buffers[reuse->to].name);
  return found;
}

interp::Tensor numbers(const loops::Buffer& buffer, std::mt19937& random) {
  interp::Tensor tensor;
  tensor.dtype = buffer.dtype;
  size_t count = 1;
  for (sym::Expr size : buffer.sizes) {
    tensor.sizes.push_back(size.constant());
    count *= static_cast<size_t>(size.constant());
  }
  for (size_t k = 0; k < count; ++k) tensor.elements.push_back(Scalar::from_real(buffer.dtype, static_cast<double>(random() % 1000) / 500 - 1));
  return tensor;
}

// Sound, and what the program computes.
plan::Plan checked_plan(const std::string& text, const Target& target) {
  const loops::Program program = parse_for(text, target);
  plan::Plan plan = make_plan(program, target, Options());
  const std::vector<std::string> broken = plan::verify(plan);
  INFO((broken.empty() ? "" : broken.front()));
  CHECK(broken.empty());
  std::mt19937 random(1);
  interp::Arguments arguments;
  for (const loops::ProgramInput& input : program.inputs) arguments.tensors.push_back(numbers(program.buffers[input.buffer], random));
  const std::vector<interp::Tensor> expected = interp::run(program, arguments), actual = interp::run(plan, arguments);
  REQUIRE(expected.size() == actual.size());
  for (size_t k = 0; k < expected.size(); ++k) CHECK(interp::compare(expected[k], actual[k]) <= 1.0);
  return plan;
}

// t = exp(x), then `rest` makes @y from @t.
std::string after_exp(const std::string& sizes, const std::string& inputs, const std::string& result, const std::string& rest) {
  return "program @p on DEVICE (@x: f32" + sizes + inputs + ") {\n  temporary @t: f32" + sizes + "\n  output @y: f32" + result + R"(
  region @n0 over i < 64, j < 96 {
    %0 = load @x[i, j]
    %1 = exp(%0)
    store @t[i, j] = %1
  }
)" + rest +
         "  return @y\n}";
}

TEST_CASE("pointwise results and rows take the place of an operand that dies") {
  for (const Target& target : {gpu(), cpu()}) {
    INFO(target.name);
    const std::vector<std::string> in_place{"t>y"};
    CHECK(reuses(checked_plan(after_exp("[64, 96]", ", @b: f32[96]", "[64, 96]", R"(  region @n1 over i < 64, j < 96 {
    %0 = load @t[i, j]
    %1 = load @b[j]
    %2 = add(%0, %1)
    store @y[i, j] = %2
  }
)"),
                              target)) == in_place);
    // Shapes differ, places do not.
    CHECK(reuses(checked_plan(after_exp("[64, 96]", "", "[32, 2, 96]", R"(  region @n1 over i < 32, k < 2, j < 96 {
    %0 = load @t[2*i + k, j]
    %1 = neg(%0)
    store @y[i, k, j] = %1
  }
)"),
                              target)) == in_place);
    CHECK(reuses(checked_plan(after_exp("[64, 96]", "", "[64, 96]", R"(  region @n1 over i < 64, j < 96 {
    %0 = load @t[i, j]
    %1 = reduce<max>(%0) over j
    %2 = sub(%0, %1)
    store @y[i, j] = %2
  }
)"),
                              target)) == in_place);
  }
}

TEST_CASE("what is read elsewhere, by others or in another type is not written over") {
  for (const Target& target : {gpu(), cpu()}) {
    INFO(target.name);
    // Mirrored: each element is read where another is written.
    CHECK(reuses(checked_plan(after_exp("[64, 96]", "", "[64, 96]", R"(  region @n1 over i < 64, j < 96 {
    %0 = load @t[i, 95 - j]
    store @y[i, j] = %0
  }
)"),
                              target))
              .empty());
    // Also read as a neighbour.
    CHECK(reuses(checked_plan(after_exp("[64, 96]", "", "[64, 96]", R"(  region @n1 over i < 64, j < 96 {
    %0 = load @t[i, j]
    %1 = load @t[63 - i, j]
    %2 = add(%0, %1)
    store @y[i, j] = %2
  }
)"),
                              target))
              .empty());
    // Read again by a later step.
    CHECK(reuses(checked_plan(after_exp("[64, 96]", "", "[64, 96]\n  temporary @u: f32[64, 96]", R"(  region @n1 over i < 64, j < 96 {
    %0 = load @t[i, j]
    %1 = reduce<sum>(%0) over j
    %2 = sub(%0, %1)
    store @u[i, j] = %2
  }
  region @n2 over i < 64, j < 96 {
    %0 = load @u[i, 95 - j]
    %1 = load @t[i, j]
    %2 = add(%0, %1)
    store @y[i, j] = %2
  }
)"),
                              target)) == std::vector<std::string>{"t>y"});
    // Four bytes as well, but integers.
    CHECK(reuses(checked_plan(R"(program @p on DEVICE (@x: f32[64, 96]) {
  temporary @t: i32[64, 96]
  output @y: f32[64, 96]
  region @n0 over i < 64, j < 96 {
    %0 = load @x[i, j]
    %1 = cast<i32>(%0)
    store @t[i, j] = %1
  }
  region @n1 over i < 64, j < 96 {
    %0 = load @t[i, j]
    %1 = cast<f32>(%0)
    store @y[i, j] = %1
  }
  return @y
})",
                              target))
              .empty());
    // A value a row: every thread of the row reads it, one stores.
    CHECK(reuses(checked_plan(R"(program @p on DEVICE (@x: f32[64, 96]) {
  temporary @t: f32[64]
  output @y: f32[64]
  output @z: f32[64, 96]
  region @n0 over i < 64, j < 96 {
    %0 = load @x[i, j]
    %1 = reduce<max>(%0) over j
    store @t[i] = %1
  }
  region @n1 over i < 64, j < 96 {
    %0 = load @t[i]
    %1 = load @x[i, j]
    %2 = add(%0, %1)
    %3 = reduce<sum>(%2) over j
    %4 = add(%3, %0)
    store @z[i, j] = %2
    store @y[i] = %4
  }
  return @y, @z
})",
                              target))
              .empty());
  }
}

const char* const donation = R"(
program @p on DEVICE (@g: f32[1024, 1024] donated, @s: f32[1024, 1024]GIVEN) {
  output @y: f32[1024, 1024]
  output @z: f32[1024, 1024]
  region @n0 over i < 1024, j < 1024 {
    %0 = load @g[i, j]
    %1 = load @s[i, j]
    %2 = mul(%0, %1)
    %3 = add(%0, %1)
    store @y[i, j] = %2
    store @z[i, j] = %3
  }
  return @y, @z
})";

TEST_CASE("inputs that the caller gave up become results") {
  for (const Target& target : {gpu(), cpu()})
    for (const bool both : {false, true}) {
      std::string text = donation;
      text.replace(text.find("GIVEN"), 5, both ? " donated" : "");
      const plan::Plan plan = plan_for(text, target);
      CHECK(plan::verify(plan).empty());
      CHECK(reuses(plan) == (both ? std::vector<std::string>{"g>y", "s>z"} : std::vector<std::string>{"g>y"}));
      CHECK(plan::profile_memory(plan).peak == 8 << 20);
    }
}

// Four large values are made and summed up to one number each: made and used in turn, one of them lives at a time.
std::string wide_then_narrow(bool donated) {
  std::string text = std::string("program @p on DEVICE (@x: f32[256, 1024]") + (donated ? " donated" : "") + ") {\n";
  for (int k = 0; k < 4; ++k) text += fmt::format("  temporary @t{}: f32[256, 1024]\n  output @y{}: f32[]\n", k, k);
  for (int k = 0; k < 4; ++k)
    text += fmt::format(R"(  region @a{0} over i < 256, j < 1024 {{
    %0 = load @x[i, j]
    %1 = constant f32({0})
    %2 = add(%0, %1)
    store @t{0}[i, j] = %2
  }}
)",
                        k);
  for (int k = 0; k < 4; ++k)
    text += fmt::format(R"(  region @b{0} over i < 256, j < 1024 {{
    %0 = load @t{0}[i, j]
    %1 = reduce<sum>(%0) over i, j
    store @y{0}[] = %1
  }}
)",
                        k);
  return text + "  return @y0, @y1, @y2, @y3\n}";
}

TEST_CASE("steps are put in an order that needs less memory") {
  constexpr int64_t megabyte = 1 << 20;
  const loops::Program program = parse_for(wide_then_narrow(false), gpu());
  const std::vector<size_t> order = reorder_for_peak_memory(program);
  REQUIRE(order.size() == 8);
  for (size_t k = 0; k < 4; ++k) CHECK(std::find(order.begin(), order.end(), k) < std::find(order.begin(), order.end(), k + 4));
  const plan::Plan plan = plan_for(wide_then_narrow(false), gpu());
  CHECK(plan::verify(plan).empty());
  CHECK(plan::profile_memory(plan).peak < 2 * megabyte);
  CHECK(plan::profile_memory(plan).lower_bound <= plan::profile_memory(plan).peak);
}

TEST_CASE("what is mutated is read before and after as the program says, whatever the order costs") {
  const std::string text = R"(
program @p on DEVICE (@x: f32[32, 128]) {
  temporary @t: f32[32, 128]
  output @y: f32[]
  output @z: f32[32, 128]
  region @a over i < 32, j < 128 {
    %0 = load @x[i, j]
    %1 = add(%0, %0)
    store @t[i, j] = %1
  }
  region @m over i < 32, j < 128 {
    %0 = load @t[i, j]
    store @x[i, j] = %0
  }
  region @c over i < 32, j < 128 {
    %0 = load @x[i, j]
    store @z[i, j] = %0
  }
  region @b over i < 32, j < 128 {
    %0 = load @t[i, j]
    %1 = reduce<sum>(%0) over i, j
    store @y[] = %1
  }
  return @y, @z
})";
  for (const Target& target : {gpu(), cpu()}) checked_plan(text, target);
  const std::vector<size_t> order = reorder_for_peak_memory(parse_for(text, gpu()));
  const auto place = [&](size_t step) { return std::find(order.begin(), order.end(), step); };
  CHECK(place(0) < place(1));
  CHECK(place(1) < place(2));
}

TEST_CASE("temporaries leave the arena where the peak needs it, and only as many as that takes") {
  const int64_t large = 64 << 20, small = 4096;
  // Two large temporaries at the start, then as much in outputs: an arena would stay until the end.
  const std::vector<LiveRange> temporaries{{large, 0, 1}, {large, 1, 2}, {small, 0, 5}};
  const std::vector<LiveRange> held{{large, 3, 5}, {large, 4, 5}};
  const std::vector<bool> own = choose_standalone(temporaries, held, 2 * large + (2 << 20));
  CHECK(own == std::vector<bool>{true, true, false});
  CHECK(choose_standalone(temporaries, {}, 4 * large) == std::vector<bool>{false, false, false});
}

}  // namespace
}  // namespace cxxinductor::schedule::test
