#include "ir/graph/symbols.h"
#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {

bool remove_dead_code(graph::Graph& graph, const Options&) {
  std::vector<bool> keep(graph.nodes.size(), false);
  auto need = [&](graph::ValueId id) {
    if (graph::NodeId producer = graph.values[id].producer; producer.valid()) keep[producer.index()] = true;
  };
  for (const graph::Output& output : graph.outputs)
    if (output.kind == graph::Output::Kind::Tensor) need(output.value);
  for (const graph::Mutation& mutation : graph.mutations) need(mutation.value);
  const graph::Definers definers = graph::find_definers(graph);
  for (const graph::Output& output : graph.outputs)
    for (sym::Expr symbol : output.symbol.free_symbols())
      if (const auto found = definers.find(symbol.name()); found != definers.end()) keep[found->second.index()] = true;
  bool all = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const graph::Node& node = graph.nodes[graph::NodeId(n)];
    // Side effects are needed for themselves; so are checks of data-dependent indices.
    if (const auto* call = node.as<graph::Extern>(); call && (call->ordered || !call->mutated_operands.empty())) keep[n] = true;
    if (const auto* gather = node.as<graph::Gather>(); gather && gather->check) keep[n] = true;
    if (const auto* scatter = node.as<graph::Scatter>(); scatter && scatter->check && node.operands.size() > 2) keep[n] = true;
    if (!keep[n]) {
      all = false;
      continue;
    }
    for (const graph::Operand& operand : node.operands)
      if (const auto* id = std::get_if<graph::ValueId>(&operand)) need(*id);
    graph::for_each_definer(graph, definers, graph::NodeId(n), [&](graph::NodeId definer) { keep[definer.index()] = true; });
  }
  if (!all) keep_nodes(graph, keep);
  return !all;
}

}  // namespace cxxinductor::passes
