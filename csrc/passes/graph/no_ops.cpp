// Removes nodes that return their operand, bit for bit: conversions there and back, views that move nothing, slices joined
// again, copies that no reader can distinguish from the original, arithmetic that changes nothing (algebra.def).
#include <algorithm>

#include "ir/graph/infer.h"
#include "passes/graph/algebra.h"
#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;

// Every value of `narrow` is a value of `wide`.
bool widens(DType narrow, DType wide) {
  const DTypeInfo &a = info(narrow), &b = info(wide);
  if (a.dtype_class == DTypeClass::Float) return b.dtype_class == DTypeClass::Float && (narrow == wide || b.bytes > a.bytes);
  if (a.dtype_class == DTypeClass::Signed || a.dtype_class == DTypeClass::Unsigned)
    return (a.dtype_class == b.dtype_class && b.bytes >= a.bytes) ||
           (a.dtype_class == DTypeClass::Unsigned && b.dtype_class == DTypeClass::Signed && b.bytes > a.bytes);
  return narrow == wide;
}

class NoOpFinder {
 public:
  explicit NoOpFinder(const graph::Graph& graph) : graph_(graph) {}

  // The operand that the node's result equals; invalid when there is none.
  ValueId same_as(const graph::Node& node) const {
    if (const auto* elementwise = node.as<graph::Elementwise>()) return elementwise_operand(node, elementwise->op);
    if (node.operands.empty() || !std::holds_alternative<ValueId>(node.operands[0])) return {};
    auto x = std::get<ValueId>(node.operands[0]);
    const auto& sizes = graph_.values[x].sizes;
    bool same = false;
    if (node.as<graph::Reshape>() || node.as<graph::Expand>()) same = true;  // if sizes agree, see interchangeable
    if (const auto* permute = node.as<graph::Permute>()) same = std::is_sorted(permute->dims.begin(), permute->dims.end());
    if (const auto* slice = node.as<graph::Slice>()) same = slice->start.is_constant(0) && slice->step.is_constant(1);
    if (const auto* flip = node.as<graph::Flip>())
      same = std::all_of(flip->dims.begin(), flip->dims.end(), [&](int d) { return sizes[static_cast<size_t>(d)].is_constant(1); });
    if (const auto* pad = node.as<graph::Pad>()) same = std::all_of(pad->low.begin(), pad->low.end(), [](sym::Expr low) { return low.is_constant(0); });
    if (const auto* cat = node.as<graph::Cat>()) return whole_of_slices(node, cat->dim);
    return same ? x : ValueId();
  }

  // Readers cannot distinguish the two, including externs that see strides.
  bool interchangeable(ValueId a, ValueId b) const {
    const graph::Value &x = graph_.values[a], &y = graph_.values[b];
    return x.dtype == y.dtype && x.device == y.device && graph::same_sizes(graph_.assumptions, x.sizes, y.sizes) && x.layout.strides == y.layout.strides;
  }

 private:
  ValueId tensor(const graph::Operand& operand) const {
    const auto* id = std::get_if<ValueId>(&operand);
    return id ? *id : ValueId();
  }

  ValueId elementwise_operand(const graph::Node& node, ScalarOp op) const {
    if (op == ScalarOp::Identity) return tensor(node.operands[0]);
    if (op == ScalarOp::Cast) return converted_back(tensor(node.operands[0]), graph_.values[node.results[0]].dtype);
    return same_by_algebra(graph_, node);
  }

  const graph::Node* producer_of(ValueId x) const {
    const graph::NodeId producer = x.valid() ? graph_.values[x].producer : graph::NodeId();
    return producer.valid() ? &graph_.nodes[producer] : nullptr;
  }

  // cat(x), and cat(x[:a], x[a:b], x[b:]) along one dimension
  ValueId whole_of_slices(const graph::Node& cat, int dim) const {
    if (cat.operands.size() == 1) return tensor(cat.operands[0]);
    const auto d = static_cast<size_t>(dim);
    ValueId whole;
    sym::Expr end = 0;
    for (const graph::Operand& operand : cat.operands) {
      const graph::Node* producer = producer_of(tensor(operand));
      const auto* slice = producer ? producer->as<graph::Slice>() : nullptr;
      if (!slice || slice->dim != dim || !slice->step.is_constant(1) || slice->start != end) return {};
      const ValueId sliced = tensor(producer->operands[0]);
      if (whole.valid() && sliced != whole) return {};
      whole = sliced;
      end = end + graph_.values[tensor(operand)].sizes[d];
    }
    return end == graph_.values[whole].sizes[d] ? whole : ValueId();
  }

  // cast<narrow>(cast<wide>(x: narrow))
  ValueId converted_back(ValueId x, DType to) const {
    if (!x.valid() || graph_.values[x].dtype == to) return x;
    graph::NodeId producer = graph_.values[x].producer;
    if (!producer.valid()) return {};
    const auto* inner = graph_.nodes[producer].as<graph::Elementwise>();
    if (!inner || inner->op != ScalarOp::Cast) return {};
    ValueId original = tensor(graph_.nodes[producer].operands[0]);
    if (!original.valid() || graph_.values[original].dtype != to || !widens(to, graph_.values[x].dtype)) return {};
    return original;
  }

  const graph::Graph& graph_;
};

}  // namespace

bool remove_no_ops(graph::Graph& graph, const Options&) {
  auto replacements = no_replacements(graph);
  const auto escaping = escaping_values(graph);
  bool changed = false;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    graph::Node& node = graph.nodes[graph::NodeId(n)];
    for (graph::Operand& operand : node.operands)
      if (auto* id = std::get_if<ValueId>(&operand)) *id = replacements[*id];
    if (node.results.size() != 1 || escaping[node.results[0]]) continue;
    ValueId same = NoOpFinder(graph).same_as(node);
    if (!same.valid() || !NoOpFinder(graph).interchangeable(same, node.results[0])) continue;
    replacements[node.results[0]] = same;
    changed = true;
  }
  if (changed) replace_values(graph, replacements);
  return changed;
}

}  // namespace cxxinductor::passes
