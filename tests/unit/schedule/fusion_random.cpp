// Random graphs of views, reductions, masks and gathers: fusion never changes a value, and plans of the results verify.
#include "ir/graph/verify.h"
#include "ir/plan/verify.h"
#include "unit/catch.h"
#include "unit/make_plan.h"
#include "unit/schedule/fusion_programs.h"
#include "unit/schedule/random_graph.h"

using namespace fusion_tests;

TEST_CASE("fusion keeps the values of random graphs", "[schedule][fusion][fuzz]") {
  // Few multiprocessors would hide splits and refusals, many provoke them.
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    graph::Graph g = RandomGraph(seed).make();
    INFO("seed " << seed << "\n" << graph::print(g));
    REQUIRE(graph::verify(g).empty());
    const Target target = cuda_target("sm_90a", seed % 3 ? 132 : 2);
    Fused f = fuse_graph(std::move(g), target);
    INFO(loops::print(f.fused));
    for (int64_t s0 : {1, 3}) REQUIRE(worst_difference(f, arguments_for(f.graph, {{"s0", s0}}, seed)) <= 1);
    // Without matrix products, what is apart was looked at while regions merged.
    for (const plan::MissedFusion& missed : f.missed_fusions) REQUIRE(missed.reason.find("a matrix product") == std::string::npos);
    plan::Plan planned = schedule::test::make_plan(f.fused, target, {});
    REQUIRE(plan::verify(planned).empty());
  }
}
