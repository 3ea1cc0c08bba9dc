// Runs pipelines of passes: times them, verifies after each (options.verify = "each"), skips those that options.skip_passes
// names, and stops once options.pass_limit passes of the compile have changed something. It alone counts them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/loops/loops.h"
#include "passes/pass.h"

namespace cxxinductor::passes {

struct PassTime {
  std::string_view name;
  double seconds = 0;
  bool changed = false;
  bool spends_memory = false;
};

std::span<const Pass<graph::Graph>> graph_pipeline();
std::span<const Pass<loops::Program>> loops_pipeline();

struct PassInfo {
  std::string_view name, doc;
};
std::vector<PassInfo> pass_table();  // of both pipelines, in their order
// UserError lists the known passes when options.skip_passes names an unknown one. Pipelines check it too; a caller that takes
// options from a user does so before it compiles.
// text_passes: names of passes that users registered, which are known too.
void check_skip_passes(const Options& options, std::span<const std::string> text_passes = {});

// Gives the passes that ran, in order. applied: passes that changed something before, in other pipelines of the same compile.
template <class IR>
std::vector<PassTime> run_pipeline(std::span<const Pass<IR>> pipeline, IR& ir, const Options& options, size_t applied = 0);
extern template std::vector<PassTime> run_pipeline(std::span<const Pass<graph::Graph>>, graph::Graph&, const Options&, size_t);
extern template std::vector<PassTime> run_pipeline(std::span<const Pass<loops::Program>>, loops::Program&, const Options&, size_t);

std::vector<PassTime> run_graph_pipeline(graph::Graph& graph, const Options& options);
std::vector<PassTime> run_loops_pipeline(loops::Program& program, const Options& options, size_t applied = 0);

}  // namespace cxxinductor::passes
