// Computes equal nodes once. Externs are never equal (they may allocate, count or draw random numbers), and values that leave
// the graph keep their own storage.
#include <unordered_map>

#include "ir/graph/node_traits.h"
#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;

bool same_result(const graph::Value& a, const graph::Value& b) {
  return a.dtype == b.dtype && a.device == b.device && a.sizes == b.sizes && a.layout.kind == b.layout.kind && a.layout.strides == b.layout.strides;
}

bool same_node(const graph::Graph& graph, const graph::Node& a, const graph::Node& b) {
  if (a.operands != b.operands || a.results.size() != b.results.size()) return false;
  for (size_t r = 0; r < a.results.size(); ++r)
    if (!same_result(graph.values[a.results[r]], graph.values[b.results[r]])) return false;
  const auto* scatter = a.as<graph::Scatter>();
  return graph::same_kind(a.kind, b.kind) && !(scatter && scatter->inplace);
}

size_t hash_of(const graph::Graph& graph, const graph::Node& node) {
  size_t hash = graph::hash_of(node.kind);
  auto add = [&](size_t value) { hash = hash * 0x9e3779b97f4a7c15ull + value + (hash >> 31); };
  for (const graph::Operand& operand : node.operands) {
    if (const auto* id = std::get_if<ValueId>(&operand))
      add(id->index());
    else if (const auto* scalar = std::get_if<Scalar>(&operand))
      add(std::hash<double>()(scalar->real()) + static_cast<size_t>(scalar->integer()));
    else
      add(std::get<sym::Expr>(operand).hash());
  }
  for (sym::Expr size : graph.values[node.results[0]].sizes) add(size.hash());
  return hash;
}

}  // namespace

bool eliminate_common_subexpressions(graph::Graph& graph, const Options&) {
  auto replacements = no_replacements(graph);
  const auto escaping = escaping_values(graph);
  std::unordered_multimap<size_t, graph::NodeId> known;  // looked up, never iterated
  bool changed = false;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    graph::Node& node = graph.nodes[graph::NodeId(n)];
    for (graph::Operand& operand : node.operands)
      if (auto* id = std::get_if<ValueId>(&operand)) *id = replacements[*id];
    if (node.as<graph::Extern>() || node.results.empty()) continue;
    const size_t hash = hash_of(graph, node);
    bool escapes = false;
    for (ValueId result : node.results) escapes = escapes || escaping[result];
    bool merged = false;
    for (auto [it, end] = known.equal_range(hash); it != end && !merged && !escapes; ++it) {
      const graph::Node& earlier = graph.nodes[it->second];
      if (!same_node(graph, earlier, node)) continue;
      for (size_t r = 0; r < node.results.size(); ++r) replacements[node.results[r]] = earlier.results[r];
      merged = changed = true;
    }
    if (!merged) known.emplace(hash, graph::NodeId(n));
  }
  if (changed) replace_values(graph, replacements);
  return changed;
}

}  // namespace cxxinductor::passes
