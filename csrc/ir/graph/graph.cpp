#include "ir/graph/graph.h"

#include <algorithm>

#include "ir/callees.h"
#include "ir/device_types.h"
#include "ir/graph/node_traits.h"
#include "ir/strides.h"

namespace cxxinductor::graph {

Graph::Graph() = default;
Graph::Graph(const Graph&) = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(const Graph&) = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

std::vector<sym::Expr> contiguous_strides(const std::vector<sym::Expr>& sizes) { return row_major_strides(sizes); }

sym::Expr element_count(const std::vector<sym::Expr>& sizes) { return sym::product(sizes); }

bool is_last_version(const Graph& graph, const Mutation& mutation) {
  const auto last = std::find_if(graph.mutations.rbegin(), graph.mutations.rend(), [&](const Mutation& other) { return other.input == mutation.input; });
  return &*last == &mutation;
}

bool may_raise(const Graph& graph, const Node& node) {
  if (const auto* callee = node.as<Extern>()) return cxxinductor::may_raise(callee->callee);
  if (node.results.empty() || !info(graph.value(node.results[0]).device.type).raises_at_once) return false;
  const auto* gather = node.as<Gather>();
  const auto* scatter = node.as<Scatter>();
  return (gather && gather->check) || (scatter && scatter->check && !scatter->index_dims.empty());
}

bool may_collide(const Scatter& scatter) { return !scatter.index_dims.empty() && !scatter.unique_indices; }

std::optional<ValueId> shares_storage_with(const Graph& graph, ValueId id) {
  const Value& value = graph.values[id];
  if (!value.producer.valid()) return std::nullopt;
  const Node& node = graph.nodes[value.producer];
  size_t operand = 0;
  if (const auto* callee = node.as<Extern>()) {
    if (value.result_index >= callee->alias_of.size() || callee->alias_of[value.result_index] < 0) return std::nullopt;
    operand = static_cast<size_t>(callee->alias_of[value.result_index]);
  } else if (const auto* scatter = node.as<Scatter>(); !is_view(node.kind) && !(scatter && scatter->inplace)) {
    return std::nullopt;
  }
  if (operand >= node.operands.size()) return std::nullopt;
  const auto* below = std::get_if<ValueId>(&node.operands[operand]);
  return below ? std::optional(*below) : std::nullopt;
}

ValueId storage_of(const Graph& graph, ValueId id) {
  while (const auto below = shares_storage_with(graph, id)) id = *below;
  return id;
}

bool is_view(const NodeKind& kind) {
  return std::visit([]<class Kind>(const Kind&) { return NodeTraits<Kind>::is_view; }, kind);
}

}  // namespace cxxinductor::graph
