// Passes never change a value: random graphs before and after the graph pipeline, and fused before and after the loops
// pipeline.
#include "ir/graph/verify.h"
#include "passes/pass_manager.h"
#include "unit/catch.h"
#include "unit/schedule/fusion_programs.h"
#include "unit/schedule/random_graph.h"

using namespace fusion_tests;

TEST_CASE("passes keep the values of random graphs", "[passes][fuzz]") {
  Options options;
  options.verify = "each";
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const graph::Graph g = RandomGraph(seed).make();
    INFO("seed " << seed << "\n" << graph::print(g));
    graph::Graph rewritten = g;
    passes::run_graph_pipeline(rewritten, options);
    INFO(graph::print(rewritten));
    Fused f = fuse_graph(rewritten);
    passes::run_loops_pipeline(f.fused, options);
    INFO(loops::print(f.fused));
    f.graph = g;
    for (int64_t s0 : {1, 3}) REQUIRE(worst_difference(f, arguments_for(g, {{"s0", s0}}, seed)) <= 1);
  }
}
