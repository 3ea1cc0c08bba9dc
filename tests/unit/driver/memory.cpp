// Plans that would hold more than eager are made again with fusions that keep less alive.
#include "ir/plan/memory.h"

#include <fmt/format.h>

#include "driver/compile.h"
#include "ir/graph/memory.h"
#include "ir/graph/text.h"
#include "lowering/lower.h"
#include "schedule/schedule.h"
#include "unit/catch.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;

namespace {

// A residual stream with a branch a layer, of which one row is read in the end: cheap to compute from all branches.
std::string residual_stream(int layers) {
  std::string text = "graph @f on cuda:0 (%x: f32[256, 1024], %w: f32[1024, 1024]) {\n";
  std::string stream = "x";
  for (int k = 0; k < layers; ++k) {
    text += fmt::format("  %a{0} = exp(%{1})\n", k, stream);
    text += fmt::format("  %b{0}: f32[256, 1024] = extern \"aten::mm\"($0, $1) with (%a{0}, %w) planned_out\n", k);
    text += fmt::format("  %s{0} = add(%{1}, %b{0})\n", k, stream);
    stream = fmt::format("s{}", k);
  }
  return text + fmt::format("  %row: f32[1, 1024] = slice<dim=0, start=0, step=1>(%{})\n  %y = mul(%row, 2.0)\n  return %y\n}}\n",
                            stream);
}

}  // namespace

TEST_CASE("a plan above eager's peak is made again", "[driver][memory]") {
  const graph::Graph graph = graph::parse(residual_stream(24));
  const Target target = cuda_target("sm_90a", 132);
  const int64_t eager = graph::eager_peaks(graph).at({DeviceType::Cuda, 0});
  // The branches, all kept for the row, are what fusion by time alone would hold.
  const plan::Plan first =
      schedule::make_plan(schedule::fuse(lowering::lower(graph), target, {}, nullptr), target, {}, graph::eager_peaks(graph));
  CHECK(plan::profile_memory(first).peak > eager);

  runtime::PlainHost host;
  driver::Request request;
  request.graph = graph;
  request.targets = target;
  request.host = &host;
  plan::Plan plan;
  request.make_provider = [&](const plan::Plan& made, const Targets&) {
    plan = made;
    return std::make_shared<runtime::FunctionProvider>(std::vector<runtime::KernelBody>());
  };
  driver::compile(std::move(request));
  CHECK(plan.eager_peaks.at({DeviceType::Cuda, 0}) == eager);
  CHECK(plan::profile_memory(plan).peak <= eager);
}
