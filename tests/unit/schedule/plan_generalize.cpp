// Kernels that differ in sizes alone become one, which takes the sizes as arguments.
#include <algorithm>
#include <cmath>
#include <random>

#include "interp/interp.h"
#include "ir/plan/text.h"
#include "ir/plan/verify.h"
#include "schedule/plan/kernel_constants.h"
#include "unit/catch.h"
#include "unit/make_plan.h"
#include "unit/schedule/plan_programs.h"

namespace cxxinductor::schedule::test {
namespace {

Options without() {
  Options options;
  options.generalize_kernels = "off";
  return options;
}

std::vector<std::string> texts(const plan::Plan& plan) {
  std::vector<std::string> found;
  for (const plan::Kernel& kernel : plan.kernels) {
    plan::Kernel same = kernel;
    same.bytes_read_hint = same.bytes_written_hint = 0;
    found.push_back(same.name + "\n" + plan::print(same));
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST_CASE("kernels that differ in sizes alone are one kernel", "[generalize]") {
  for (const Target& target : {gpu(), cpu()})
    for (const bool sums : {false, true}) {
      INFO(target.name << (sums ? " sums" : ""));
      const loops::Program program = parse_for(layers(growing(18, 5, 3), 7, sums), target);
      CHECK(make_plan(program, target, without()).kernels.size() == 18);
      const plan::Plan plan = make_plan(program, target, Options());
      for (const std::string& message : plan::verify(plan)) FAIL_CHECK(message);
      REQUIRE(plan.kernels.size() == 1);
      const plan::Kernel& kernel = plan.kernels[plan::KernelId(0)];
      CHECK(kernel.name.starts_with("sizes_"));
      CHECK(kernel.symbols.size() >= 2);
      CHECK(kernel.always_index32);
      for (const plan::Step& step : plan.steps)
        for (const plan::Launch& launch : plan::launches_of(step)) CHECK(launch.specializations.empty());
      CHECK(plan::print(plan::parse(plan::print(plan))) == plan::print(plan));
    }
}

TEST_CASE("a kernel for many sizes computes what theirs compute", "[generalize]") {
  for (const Target& target : {gpu(), cpu()})
    for (const bool sums : {false, true}) {
      INFO(target.name << (sums ? " sums" : ""));
      const loops::Program program = parse_for(layers(growing(17, 3, 2), 6, sums), target);
      interp::Arguments arguments;
      std::mt19937 random(3);
      std::normal_distribution<double> normal;
      for (const loops::ProgramInput& input : program.inputs) {
        interp::Tensor tensor{DType::F32, {}, {}};
        int64_t count = 1;
        for (sym::Expr size : program.buffers[input.buffer].sizes) {
          tensor.sizes.push_back(size.constant());
          count *= size.constant();
        }
        for (int64_t k = 0; k < count; ++k) tensor.elements.push_back(Scalar::from_real(DType::F32, normal(random)));
        arguments.tensors.push_back(std::move(tensor));
      }
      const plan::Plan plan = make_plan(program, target, Options());
      REQUIRE(plan.kernels.size() == 1);
      const std::vector<interp::Tensor> expected = interp::run(program, arguments), actual = interp::run(plan, arguments);
      REQUIRE(expected.size() == actual.size());
      for (size_t k = 0; k < expected.size(); ++k) CHECK(interp::compare(expected[k], actual[k]) <= 1.0);
    }
}

// Each of `constants` times a matrix of its own size.
std::string scaled_matrices(const std::vector<float>& constants) {
  std::string inputs, buffers, regions, outputs;
  for (size_t i = 0; i < constants.size(); ++i) {
    const size_t rows = 5 + i, columns = 33 + 2 * i;
    inputs += fmt::format("{}@x{}: f32[{}, {}]", i ? ", " : "", i, rows, columns + 2);
    buffers += fmt::format("  output @y{}: f32[{}, {}]\n", i, rows, columns);
    regions += fmt::format(R"(  region @n{0} over i < {1}, j < {2} {{
    %0 = load @x{0}[i, j]
    %1 = constant f32({3:#.9g})
    %2 = exp(%0)
    %3 = mul(%2, %1)
    store @y{0}[i, j] = %3
  }}
)",
                           i, rows, columns, constants[i]);
    outputs += fmt::format("{}@y{}", i ? ", " : "", i);
  }
  return fmt::format("program @scaled on DEVICE ({}) {{\n{}{}  return {}\n}}\n", inputs, buffers, regions, outputs);
}

TEST_CASE("kernels that differ in constants are one kernel, which computes the same", "[generalize]") {
  std::vector<float> constants;
  for (int i = 0; i < 17; ++i) constants.push_back((i % 2 ? -1.0F : 1.0F) / static_cast<float>(3 + 37 * i * i));
  for (const Target& target : {gpu(), cpu()}) {
    INFO(target.name);
    const loops::Program program = parse_for(scaled_matrices(constants), target);
    CHECK(make_plan(program, target, without()).kernels.size() == 17);
    const plan::Plan plan = make_plan(program, target, Options());
    for (const std::string& message : plan::verify(plan)) FAIL_CHECK(message);
    REQUIRE(plan.kernels.size() == 1);
    CHECK(plan::print(plan::parse(plan::print(plan))) == plan::print(plan));
    interp::Arguments arguments;
    for (const loops::ProgramInput& input : program.inputs) {
      interp::Tensor tensor{DType::F32, {}, {}};
      int64_t count = 1;
      for (sym::Expr size : program.buffers[input.buffer].sizes) {
        tensor.sizes.push_back(size.constant());
        count *= size.constant();
      }
      for (int64_t k = 0; k < count; ++k) tensor.elements.push_back(Scalar::from_real(DType::F32, static_cast<double>(k % 19) / 8 - 1));
      arguments.tensors.push_back(std::move(tensor));
    }
    const std::vector<interp::Tensor> expected = interp::run(program, arguments), actual = interp::run(plan, arguments);
    REQUIRE(expected.size() == actual.size());
    for (size_t k = 0; k < expected.size(); ++k) CHECK(expected[k].elements == actual[k].elements);
  }
}

TEST_CASE("constants of magnitudes far apart leave their kernels apart", "[generalize]") {
  std::vector<float> constants(20, 0.3F);
  for (size_t i = 10; i < constants.size(); ++i) constants[i] = 3e14F;
  CHECK(plan_for(scaled_matrices(constants), gpu()).kernels.size() == 2);
  for (size_t i = 10; i < constants.size(); ++i) constants[i] = 0;  // a zero stays a constant
  CHECK(plan_for(scaled_matrices(constants), gpu()).kernels.size() == 2);
}

TEST_CASE("f32 constants are integers of one scale, exactly", "[generalize]") {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> mantissa(1, 2);
  std::uniform_int_distribution<int> exponent(-12, 12);
  for (int turn = 0; turn < 1000; ++turn) {
    std::vector<double> values;
    for (int i = 0; i < 4; ++i) values.push_back(std::ldexp(turn % 2 ? mantissa(random) : -mantissa(random), exponent(random)));
    const std::optional<ScaledIntegers> scaled = scaled_integers(values);
    REQUIRE(scaled);
    for (size_t i = 0; i < values.size(); ++i) {
      CHECK(std::ldexp(static_cast<double>(scaled->integers[i]), scaled->exponent) == values[i]);
      CHECK(static_cast<double>(static_cast<float>(scaled->integers[i])) == static_cast<double>(scaled->integers[i]));
    }
  }
  CHECK(scaled_integers({1, 2, 4, 6272})->exponent == 0);
  CHECK_FALSE(scaled_integers({1.0 + 0x1p-23, 0x1p40}));
}

TEST_CASE("rows of other lengths are kernels apart", "[generalize]") {
  const plan::Plan seven = plan_for(layers(growing(16, 4, 4), 7, true), gpu());
  const plan::Plan eight = plan_for(layers(growing(16, 4, 4), 8, true), gpu());
  REQUIRE(seven.kernels.size() == 1);
  REQUIRE(eight.kernels.size() == 1);
  CHECK(seven.kernels[plan::KernelId(0)].name != eight.kernels[plan::KernelId(0)].name);
}

// Sums of columns of the given heights.
std::string column_sums(const std::vector<int64_t>& heights) {
  std::string inputs, buffers, regions, outputs;
  for (size_t i = 0; i < heights.size(); ++i) {
    inputs += fmt::format("{}@x{}: f32[{}, {}]", i ? ", " : "", i, heights[i], 3001 + 2 * i);
    buffers += fmt::format("  output @y{}: f32[{}]\n", i, 3001 + 2 * i);
    regions += fmt::format(
        "  region @n{0} over i < {1}, r < {2} {{\n    %0 = load @x{0}[r, i]\n    %1 = reduce<sum>(%0) over r\n    store @y{0}[i] = "
        "%1\n  }}\n",
        i, 3001 + 2 * i, heights[i]);
    outputs += fmt::format("{}@y{}", i ? ", " : "", i);
  }
  return fmt::format("program @columns on DEVICE ({}) {{\n{}{}  return {}\n}}\n", inputs, buffers, regions, outputs);
}

TEST_CASE("columns of other heights are one kernel, unless a block takes all or sums are of another kind", "[generalize]") {
  std::vector<int64_t> heights;
  for (int64_t i = 0; i < 16; ++i) heights.push_back(197 + 2 * i);
  const plan::Plan plan = plan_for(column_sums(heights), gpu());
  for (const std::string& message : plan::verify(plan)) FAIL_CHECK(message);
  REQUIRE(plan.kernels.size() == 1);
  const plan::Kernel& kernel = plan.kernels[plan::KernelId(0)];
  const auto* columns = kernel.mapping.as<plan::Columns>();
  REQUIRE(columns);
  const sym::Expr height = kernel.region.vars[kernel.mapping.row.front()].extent;
  REQUIRE(height.is_symbol());
  CHECK(kernel.assumptions.range(height.name()) == sym::Interval{1, 256});
  const int64_t turn = int64_t{columns->threads_per_row} * columns->in_flight;
  heights.back() = turn * 8;  // 224 or 256: whole turns
  REQUIRE(heights.back() < 64 * columns->threads_per_row);
  CHECK(plan_for(column_sums(heights), gpu()).kernels.size() == 2);
}

TEST_CASE("kernels of few sizes stay as they are", "[generalize]") {
  const plan::Plan plan = plan_for(layers(growing(15, 5, 3), 7, true), gpu());
  CHECK(plan.kernels.size() == 15);
  for (const plan::Kernel& kernel : plan.kernels) CHECK(kernel.symbols.empty());
}

TEST_CASE("a merged kernel depends neither on the order of kernels nor on the graph", "[generalize]") {
  const std::vector<std::string> kernels = texts(plan_for(layers(growing(20, 8, 8), 7, true), gpu()));
  REQUIRE(kernels.size() == 1);
  CHECK(texts(plan_for(layers(growing(20, 8, 8), 7, true, 7), gpu())) == kernels);
  // Other counts of channels, as in another graph of the model.
  std::vector<std::string> longer = texts(plan_for(layers(growing(28, 24, 8), 7, true), gpu()));
  REQUIRE(longer.size() == 1);
  CHECK(longer.front().substr(0, longer.front().find('\n')) == kernels.front().substr(0, kernels.front().find('\n')));
}

// Arithmetic beyond what memory takes, over points whose variables take three divisions to find.
std::string heavy(size_t count) {
  std::string inputs, buffers, regions, outputs;
  for (size_t i = 0; i < count; ++i) {
    const size_t a = 65 + 2 * i, b = 67 + 2 * i, c = 69 + 2 * i;
    inputs += fmt::format("{}@x{}: f32[33, {}, {}, {}]", i ? ", " : "", i, a, b, c);
    buffers += fmt::format("  output @y{}: f32[{}, {}, 33, {}]\n", i, b, a, c);
    regions += fmt::format(R"(  region @heavy{0} over h < 33, i < {1}, j < {2}, k < {3} {{
    %0 = load @x{0}[h, i, j, k]
    %1 = exp(%0)
    %2 = exp(%1)
    %3 = exp(%2)
    %4 = exp(%3)
    %5 = exp(%4)
    %6 = exp(%5)
    %7 = exp(%6)
    %8 = exp(%7)
    store @y{0}[j, i, h, k] = %8
  }}
)",
                           i, a, b, c);
    outputs += fmt::format("{}@y{}", i ? ", " : "", i);
  }
  return fmt::format("program @heavy on DEVICE ({}) {{\n{}{}  return {}\n}}\n", inputs, buffers, regions, outputs);
}

TEST_CASE("where arguments cost time, kernels for the sizes at hand follow in the background", "[generalize]") {
  const plan::Plan plan = plan_for(heavy(16), gpu());
  for (const std::string& message : plan::verify(plan)) FAIL_CHECK(message);
  const std::vector<bool> base = plan::base_kernels(plan);
  CHECK(std::count(base.begin(), base.end(), true) == 1);
  CHECK(plan.kernels.size() == 17);
  for (const plan::Step& step : plan.steps)
    for (const plan::Launch& launch : plan::launches_of(step)) {
      REQUIRE(launch.specializations.size() == 1);
      CHECK(launch.specializations[0].when.ranges().empty());
      CHECK(launch.specializations[0].grid_x == launch.grid_x);
    }
  CHECK(plan_for(heavy(16), cpu()).kernels.size() == 1);
}

}  // namespace
}  // namespace cxxinductor::schedule::test
