#include "passes/pass_manager.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include "ir/graph/verify.h"
#include "ir/loops/verify.h"
#include "support/error.h"

namespace cxxinductor::passes {
namespace {

void verify(const graph::Graph& graph, std::string_view after) { graph::verify_or_throw(graph, after); }
void verify(const loops::Program& program, std::string_view after) { loops::verify_or_throw(program, after); }

// A call that writes a copy gets the copy as a call, which no pass looks through (frontend/externs.cpp); the last graph passes make a node of it. Passes
// before them would take that node for the value that it copies.
void require_as_imported(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes) {
    const auto* call = node.as<graph::Extern>();
    if (!call) continue;
    for (const uint32_t operand : call->mutated_operands) {
      const auto* written = std::get_if<graph::ValueId>(&node.operands[operand]);
      const graph::NodeId producer = written ? graph.values[graph::storage_of(graph, *written)].producer : graph::NodeId();
      const auto* copy = producer.valid() ? graph.nodes[producer].as<graph::Elementwise>() : nullptr;
      if (copy && copy->op == ScalarOp::Identity)
        throw_user_error(
            "the graph passes expect a graph as it is imported; in this one a call writes the copy %{}, which they made: start behind them, with the stage "
            "const-graph",
            graph.values[*written].name);
    }
  }
}

bool is_reached(int64_t limit, size_t count) { return limit >= 0 && count >= static_cast<size_t>(limit); }

}  // namespace

template <class IR>
std::vector<PassTime> run_pipeline(std::span<const Pass<IR>> pipeline, IR& ir, const Options& options, size_t applied) {
  check_skip_passes(options);
  const std::vector<std::string> skipped = list_items(options.skip_passes);
  std::vector<PassTime> times;
  for (const Pass<IR>& pass : pipeline) {
    if (is_reached(options.pass_limit, applied)) break;
    if (std::ranges::find(skipped, pass.name) != skipped.end()) continue;
    const auto start = std::chrono::steady_clock::now();
    const bool changed = pass.function(ir, options);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    times.push_back({pass.name, taken.count(), changed, pass.spends_memory});
    applied += changed;
    if (changed && options.verify == "each") verify(ir, pass.name);
  }
  return times;
}
template std::vector<PassTime> run_pipeline(std::span<const Pass<graph::Graph>>, graph::Graph&, const Options&, size_t);
template std::vector<PassTime> run_pipeline(std::span<const Pass<loops::Program>>, loops::Program&, const Options&, size_t);

std::vector<PassInfo> pass_table() {
  std::vector<PassInfo> table;
  for (const auto& pass : graph_pipeline()) table.push_back({pass.name, pass.doc});
  for (const auto& pass : loops_pipeline()) table.push_back({pass.name, pass.doc});
  return table;
}

void check_skip_passes(const Options& options, std::span<const std::string> text_passes) {
  const std::vector<PassInfo> known = pass_table();
  for (const std::string& name : list_items(options.skip_passes)) {
    if (std::ranges::find(known, name, &PassInfo::name) != known.end() || std::ranges::find(text_passes, name) != text_passes.end()) continue;
    std::vector<std::string_view> names;
    for (const PassInfo& pass : known) names.push_back(pass.name);
    names.insert(names.end(), text_passes.begin(), text_passes.end());
    throw_user_error("option 'skip_passes': expected names of passes, found '{}'; known are {}", name, fmt::join(names, ", "));
  }
}

std::vector<PassTime> run_graph_pipeline(graph::Graph& graph, const Options& options) {
  require_as_imported(graph);
  return run_pipeline(graph_pipeline(), graph, options);
}

std::vector<PassTime> run_loops_pipeline(loops::Program& program, const Options& options, size_t applied) {
  return run_pipeline(loops_pipeline(), program, options, applied);
}

}  // namespace cxxinductor::passes
