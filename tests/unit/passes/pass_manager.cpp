// What the manager does around passes.
#include "passes/pass_manager.h"

#include "ir/graph/text.h"
#include "support/error.h"
#include "unit/catch.h"

using namespace cxxinductor;

TEST_CASE("passes are timed, named once and can be skipped", "[passes]") {
  graph::Graph g = graph::parse("graph @f(%x: f32[4]) {\n  %0 = exp(%x)\n  return %x\n}");
  Options options;
  options.skip_passes = "graph-dead-code, graph-dead-code-last";
  auto times = passes::run_graph_pipeline(g, options);
  CHECK(times.size() == passes::graph_pipeline().size() - 2);
  CHECK(g.nodes.size() == 1);
  times = passes::run_graph_pipeline(g, {});
  CHECK(times.size() == passes::graph_pipeline().size());
  CHECK(times[0].changed);
  CHECK(g.nodes.empty());
}

TEST_CASE("an unknown pass to skip is an error that lists the known ones", "[passes]") {
  graph::Graph g;
  Options options;
  options.skip_passes = "graph-magic";
  CHECK_THROWS_AS(passes::run_graph_pipeline(g, options), UserError);
  try {
    passes::run_graph_pipeline(g, options);
  } catch (const UserError& error) {
    CHECK(std::string(error.what()).find("graph-cse") != std::string::npos);
  }
}
