// Which kernels run as one launch, and what stays in the program's order.
#include <algorithm>

#include "ir/plan/grouped_launch.h"
#include "ir/plan/verify.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/schedule/plan_programs.h"

namespace cxxinductor::schedule::test {
namespace {

std::vector<size_t> group_sizes(const plan::Plan& plan) {
  std::vector<size_t> sizes;
  for (const plan::Step& step : plan.steps)
    if (const auto* group = std::get_if<plan::GroupedLaunch>(&step)) sizes.push_back(group->launches.size());
  return sizes;
}

size_t launch_steps(const plan::Plan& plan) {
  return static_cast<size_t>(std::count_if(plan.steps.begin(), plan.steps.end(), [](const plan::Step& step) { return !plan::launches_of(step).empty(); }));
}

TEST_CASE("updates of many sizes are one grouped launch after that of their scales", "[grouped]") {
  for (const bool cuda : {false, true}) {
    const plan::Plan plan = plan_for(updates({7, 100, 33, 5, 9}), cuda ? gpu() : cpu());
    CHECK(plan::verify(plan).empty());
    CHECK(group_sizes(plan) == std::vector<size_t>{5, 5});
    CHECK(launch_steps(plan) == 2);
    CHECK(plan.kernels.size() == 2);
    const plan::Kernel& update = plan.kernels[plan::KernelId(1)];
    CHECK(update.symbols == std::vector<std::string>{"elements"});
    CHECK(update.max_grouped == 32);
    CHECK(update.always_index32);
  }
}

TEST_CASE("whole vectors have a grouped launch of their own on GPUs", "[grouped]") {
  const plan::Plan plan = plan_for(updates({64, 7, 128, 9, 4096, 33, 8, 1001}), gpu());
  CHECK(group_sizes(plan) == std::vector<size_t>{8, 4, 4});
  CHECK(std::count_if(plan.kernels.begin(), plan.kernels.end(), [](const plan::Kernel& kernel) { return kernel.mapping.vector_tail; }) == 1);
}

TEST_CASE("grouped launches of other lengths and sizes share a kernel", "[grouped]") {
  std::string inputs, buffers, regions, outputs;
  const auto add = [&](const std::string& from, const std::string& to, int size) {
    buffers += fmt::format("  output @{}: f32[{}]\n", to, size);
    regions += fmt::format("  region @n{1} over i < {2} {{\n    %0 = load @{0}[i]\n    %1 = exp(%0)\n    store @{1}[i] = %1\n  }}\n", from, to, size);
    outputs += fmt::format("{}@{}", outputs.empty() ? "" : ", ", to);
  };
  for (int i = 0; i < 16; ++i) {
    inputs += fmt::format("{}@x{}: f32[{}]", i ? ", " : "", i, 8 * (i + 3));
    add(fmt::format("x{}", i), fmt::format("y{}", i), 8 * (i + 3));
  }
  for (int i = 0; i < 6; ++i) add(fmt::format("y{}", i), fmt::format("z{}", i), 8 * (i + 3));
  const plan::Plan plan = plan_for(fmt::format("program @f on DEVICE ({}) {{\n{}{}  return {}\n}}\n", inputs, buffers, regions, outputs), gpu());
  CHECK(plan::verify(plan).empty());
  CHECK(group_sizes(plan) == std::vector<size_t>{16, 6});
  CHECK(plan.kernels.size() == 1);
}

TEST_CASE("hundreds of updates are divided into tables of equal length", "[grouped]") {
  const plan::Plan plan = plan_for(updates(std::vector<int64_t>(300, 24)), gpu());
  CHECK(plan::verify(plan).empty());
  CHECK(group_sizes(plan) == std::vector<size_t>{300, 300});
  for (const plan::Kernel& kernel : plan.kernels) {
    CHECK(static_cast<size_t>(kernel.max_grouped) <= plan::grouped_capacity(kernel));
    CHECK(plan::GroupedLaunchLayout(kernel).bytes() <= plan::max_grouped_bytes + 8);
    CHECK(300 % kernel.max_grouped <= 300 / kernel.max_grouped * 2);
  }
}

TEST_CASE("few alike kernels stay launches of their own", "[grouped]") {
  const plan::Plan plan = plan_for(updates({64, 32, 16}), gpu());
  CHECK(group_sizes(plan).empty());
  CHECK(launch_steps(plan) == 6);
}

TEST_CASE("a chain of alike kernels is not a grouped launch", "[grouped]") {
  std::string text = "program @chain on DEVICE (@x: f32[64]) {\n";
  for (int i = 0; i < 6; ++i) text += fmt::format("  {} @t{}: f32[64]\n", i < 5 ? "temporary" : "output", i);
  for (int i = 0; i < 6; ++i)
    text += fmt::format("  region @n{0} over i < 64 {{\n    %0 = load @{1}[i]\n    %1 = exp(%0)\n    store @t{0}[i] = %1\n  }}\n", i,
                        i == 0 ? "x" : fmt::format("t{}", i - 1));
  const plan::Plan plan = plan_for(text + "  return @t5\n}\n", gpu());
  CHECK(group_sizes(plan).empty());
  CHECK(launch_steps(plan) == 6);
}

TEST_CASE("what makes much memory earlier stays where it is", "[grouped]") {
  std::string inputs, buffers, regions;
  for (int i = 0; i < 8; ++i) {
    inputs += fmt::format("{}@x{}: f32[200000]", i ? ", " : "", i);
    buffers += fmt::format("  temporary @t{}: f32[200000]\n  output @y{}: f32[]\n", i, i);
    regions += fmt::format(R"(  region @n{0} over i < 200000 {{
    %0 = load @x{0}[i]
    %1 = exp(%0)
    store @t{0}[i] = %1
  }}
  region @m{0} over i < 200000 {{
    %0 = load @t{0}[i]
    %1 = reduce<sum>(%0) over i
    store @y{0}[] = %1
  }}
)",
                           i);
  }
  const plan::Plan plan =
      plan_for(fmt::format("program @f on DEVICE ({}) {{\n{}{}  return @y0, @y1, @y2, @y3, @y4, @y5, @y6, @y7\n}}\n", inputs, buffers, regions), gpu());
  CHECK(plan::verify(plan).empty());
  CHECK(group_sizes(plan).empty());
  CHECK(sym::evaluate(plan.arenas.at(0).bytes, [](std::string_view) { return int64_t{0}; }) <= 800256);
}

TEST_CASE("results that all stay until the end may be made together, whatever their size", "[grouped]") {
  std::string buffers, regions, outputs;
  for (int i = 0; i < 8; ++i) {
    buffers += fmt::format("  output @y{}: bf16[4000000]\n", i);
    regions += fmt::format("  region @n{0} over i < 4000000 {{\n    %0 = load @x[i]\n    %1 = cast<bf16>(%0)\n    store @y{0}[i] = %1\n  }}\n", i);
    outputs += fmt::format("{}@y{}", i ? ", " : "", i);
  }
  const plan::Plan plan = plan_for(fmt::format("program @f on DEVICE (@x: f32[4000000]) {{\n{}{}  return {}\n}}\n", buffers, regions, outputs), gpu());
  CHECK(plan::verify(plan).empty());
  CHECK(group_sizes(plan) == std::vector<size_t>{8});
}

}  // namespace
}  // namespace cxxinductor::schedule::test
