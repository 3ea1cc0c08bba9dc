// Folds values that follow from positions alone: comparisons with one result everywhere become constants, and indices that are
// proven in range lose their check. Models compare positions to find padding or packed sequences; often there is none, and only
// a mask remains.
#include "passes/graph/index_propagation.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::NodeId;

// Predicates and their sums; other values cost no more than the constants that would replace them.
bool may_be_constant(const graph::Graph& graph, const graph::Node& node) {
  if (const auto* reduce = node.as<graph::Reduce>()) return reduce->reduction == Reduction::Sum && is_integer(graph.values[node.results[0]].dtype);
  return is_running_sum(node) || (node.as<graph::Elementwise>() && graph.values[node.results[0]].dtype == DType::Bool);
}

bool drop_checks(IndexPropagation& elements, graph::Graph& graph, NodeId id) {
  auto* gather = graph.nodes[id].as<graph::Gather>();
  if (!gather || (!gather->check && !gather->wrap)) return false;
  for (size_t k = 0; k + 1 < graph.nodes[id].operands.size(); ++k)
    if (!elements.in_range(id, k)) return false;
  gather->check = gather->wrap = false;
  return true;
}

}  // namespace

bool propagate_indices(graph::Graph& graph, const Options&) {
  IndexPropagation elements(graph);
  bool changed = false;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    graph::Node& node = graph.nodes[NodeId(n)];
    changed = drop_checks(elements, graph, NodeId(n)) || changed;
    if (!may_be_constant(graph, node)) continue;
    const auto element = elements.of(node.results[0]);
    const Scalar* scalar = element ? element->constant() : nullptr;
    if (!scalar) continue;
    graph::Value& value = graph.values[node.results[0]];
    node.kind = graph::Full{};
    node.operands = {cast(*scalar, compute_type(value.dtype))};
    value.layout.kind = graph::Layout::Kind::Flexible;  // the same strides
    changed = true;
  }
  return changed;
}

}  // namespace cxxinductor::passes
