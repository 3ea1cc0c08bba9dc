// How many distinct kernels graphs with layers of many sizes become: what their compile time is made of. Planning only.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "driver/stages.h"
#include "ir/graph/text.h"
#include "ir/plan/verify.h"
#include "support/error.h"
#include "unit/catch.h"

namespace cxxinductor {
namespace {

plan::Plan planned(const std::string& text, const Target& target, const Options& options) { return driver::plan_of(graph::parse(text), target, options); }

size_t count_base_kernels(const plan::Plan& plan) {
  const std::vector<bool> base = plan::base_kernels(plan);
  return static_cast<size_t>(std::count(base.begin(), base.end(), true));
}

std::string text_of_model(const std::string& name) {
  std::ifstream file(std::filesystem::path(CXXINDUCTOR_SOURCE_DIR) / "tests/models/training" / (name + ".cxxi"));
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Layers as in a dense block: each scales and clips the concatenation of all results before it, a graph output as in
// training, and a call makes four channels of it.
std::string dense_block(int layers) {
  std::string inputs = "%x0: f32[2, 8, 49]", nodes, outputs, operands = "%x0";
  for (int i = 1; i <= layers; ++i) {
    const int channels = 8 + 4 * (i - 1);
    inputs += fmt::format(", %s{}: f32[{}, 1]", i, channels);
    std::string source = "%x0";
    if (i > 1) {
      source = fmt::format("%c{}", i);
      nodes += fmt::format("  {} = cat<dim=1>({})\n", source, operands);
    }
    nodes += fmt::format("  %e{0}: f32[2, {1}, 49] = expand(%s{0})\n  %m{0} = mul({2}, %e{0})\n  %r{0} = relu(%m{0})\n", i, channels, source);
    nodes += fmt::format("  %x{0}: f32[2, 4, 49] = extern \"custom::layer\"($0) with (%r{0})\n", i);
    operands += fmt::format(", %x{}", i);
    if (i > 1) outputs += source + ", ";
  }
  return fmt::format("graph @dense on cuda:0 ({}) {{\n{}  return {}%x{}\n}}\n", inputs, nodes, outputs, layers);
}

TEST_CASE("layers of a dense block share kernels", "[counts]") {
  const Target target = cuda_target("sm_90a", 132);
  Options off;
  off.generalize_kernels = "off";
  CHECK(count_base_kernels(planned(dense_block(24), target, off)) >= 24);
  const plan::Plan plan = planned(dense_block(24), target, Options());
  for (const std::string& message : plan::verify(plan)) FAIL_CHECK(message);
  CHECK(count_base_kernels(plan) <= 3);
}

TEST_CASE("densenet121 in training has few kernels", "[counts]") {
  const Target target = cuda_target("sm_90a", 132);
  size_t count = 0;
  for (const char* name : {"densenet121_forward", "densenet121_backward"}) {
    const plan::Plan plan = planned(text_of_model(name), target, Options());
    for (const std::string& message : plan::verify(plan)) FAIL_CHECK(message);
    CHECK(plan.kernels.size() == count_base_kernels(plan));  // no launch that would be slower by 3 %
    count += count_base_kernels(plan);
  }
  CHECK(count <= 120);
}

}  // namespace
}  // namespace cxxinductor
