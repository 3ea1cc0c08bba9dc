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

TEST_CASE("passes stop once as many as the limit says have changed something", "[passes]") {
  const char* const text = "graph @f(%x: f32[4]) {\n  %0 = sin(%x)\n  %1 = exp(%x)\n  %2 = exp(%x)\n  %3 = add(%1, %2)\n  return %3\n}";
  const auto changed_with = [&](int64_t limit) {
    graph::Graph g = graph::parse(text);
    Options options;
    options.pass_limit = limit;
    std::vector<std::string_view> names;
    for (const passes::PassTime& pass : passes::run_graph_pipeline(g, options))
      if (pass.changed) names.push_back(pass.name);
    return names;
  };
  const std::vector<std::string_view> all = changed_with(-1);
  REQUIRE(all.size() >= 2);
  for (size_t limit = 0; limit <= all.size(); ++limit)
    CHECK(changed_with(static_cast<int64_t>(limit)) == std::vector(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(limit)));
}

TEST_CASE("the limit of passes counts those of pipelines before", "[passes]") {
  loops::Program program;
  Options options;
  options.pass_limit = 3;
  CHECK(passes::run_loops_pipeline(program, options, 3).empty());
  CHECK(passes::run_loops_pipeline(program, options, 2).size() == passes::loops_pipeline().size());
}

TEST_CASE("graph passes do not take a graph in which they made copies that calls write", "[passes]") {
  // %w is read later.
  graph::Graph g = graph::parse(
      "graph @f(%w: f32[8]) {\n  %0: f32[8] = extern \"aten::clone\"($0) with (%w) alias [-1]\n"
      "  extern \"custom::write\"($0) with (%0) mutates [0] ordered\n  %1 = add(%w, %0)\n  return %1\n}");
  passes::run_graph_pipeline(g, {});
  CHECK_THROWS_WITH(passes::run_graph_pipeline(g, {}), mentions("a call writes the copy %0") && mentions("const-graph"));
}
