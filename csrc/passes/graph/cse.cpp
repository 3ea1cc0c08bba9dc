// Computes equal nodes once. Externs are never equal (they may allocate, count or draw random numbers), and values that leave
// the graph keep their own storage.
#include <unordered_map>

#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;

struct SameKind {
  bool operator()(const graph::Elementwise& a, const graph::Elementwise& b) const { return a.op == b.op; }
  bool operator()(const graph::Reduce& a, const graph::Reduce& b) const {
    return a.reduction == b.reduction && a.dims == b.dims && a.keepdim == b.keepdim;
  }
  bool operator()(const graph::Full&, const graph::Full&) const { return true; }
  bool operator()(const graph::Iota& a, const graph::Iota& b) const { return a.start == b.start && a.step == b.step; }
  bool operator()(const graph::Permute& a, const graph::Permute& b) const { return a.dims == b.dims; }
  bool operator()(const graph::Reshape&, const graph::Reshape&) const { return true; }
  bool operator()(const graph::Expand&, const graph::Expand&) const { return true; }
  bool operator()(const graph::Slice& a, const graph::Slice& b) const {
    return a.dim == b.dim && a.start == b.start && a.step == b.step;
  }
  bool operator()(const graph::Flip& a, const graph::Flip& b) const { return a.dims == b.dims; }
  bool operator()(const graph::Pad& a, const graph::Pad& b) const { return a.low == b.low && a.fill == b.fill; }
  bool operator()(const graph::Cat& a, const graph::Cat& b) const { return a.dim == b.dim; }
  bool operator()(const graph::Gather& a, const graph::Gather& b) const {
    return a.source == b.source && a.index_dims == b.index_dims && a.wrap == b.wrap && a.check == b.check;
  }
  bool operator()(const graph::Scatter& a, const graph::Scatter& b) const {
    return a.target == b.target && a.index_dims == b.index_dims && a.start == b.start && a.step == b.step &&
           a.combine == b.combine && a.wrap == b.wrap && a.check == b.check && a.unique_indices == b.unique_indices &&
           !a.inplace && !b.inplace;
  }
  template <class A, class B>
  bool operator()(const A&, const B&) const {
    return false;
  }
};

bool same_result(const graph::Value& a, const graph::Value& b) {
  return a.dtype == b.dtype && a.device == b.device && a.sizes == b.sizes && a.layout.kind == b.layout.kind &&
         a.layout.strides == b.layout.strides;
}

bool same_node(const graph::Graph& graph, const graph::Node& a, const graph::Node& b) {
  if (a.operands != b.operands || a.results.size() != b.results.size()) return false;
  for (size_t r = 0; r < a.results.size(); ++r)
    if (!same_result(graph.values[a.results[r]], graph.values[b.results[r]])) return false;
  return std::visit(SameKind{}, a.kind, b.kind);
}

size_t hash_of(const graph::Graph& graph, const graph::Node& node) {
  size_t hash = node.kind.index();
  auto add = [&](size_t value) { hash = hash * 0x9e3779b97f4a7c15ull + value + (hash >> 31); };
  if (const auto* elementwise = node.as<graph::Elementwise>()) add(static_cast<size_t>(elementwise->op));
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
