// Folds constants: views of a `full` are fulls, ops on immediates are evaluated by their rows, and a full that an elementwise op
// reads becomes an immediate of that op. Values without elements are fulls of anything, and reductions over no elements are
// folded: kernels then have no loads of empty memory outside of a loop that never runs.
#include <algorithm>
#include <optional>

#include "ir/graph/infer.h"
#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;

// What the elements of a full are, as a reader in `compute` sees them; nothing if that cannot be said exactly.
std::optional<graph::Operand> constant_elements(const graph::Graph& graph, ValueId id, DType compute) {
  graph::NodeId producer = graph.values[id].producer;
  if (!producer.valid() || !graph.nodes[producer].as<graph::Full>()) return std::nullopt;
  const graph::Operand& operand = graph.nodes[producer].operands.at(0);
  const DType dtype = graph.values[id].dtype;
  if (const auto* scalar = std::get_if<Scalar>(&operand)) return cast(cast(*scalar, dtype), compute);
  if (compute == dtype) return operand;
  return std::nullopt;
}

class ConstantFolder {
 public:
  explicit ConstantFolder(graph::Graph& graph) : graph_(graph), escaping_(escaping_values(graph)) {}

  bool run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      graph::Node& node = graph_.nodes[graph::NodeId(n)];
      if (fold_empty(node)) continue;
      if (graph::is_view(node.kind))
        fold_view(node);
      else if (const auto* elementwise = node.as<graph::Elementwise>())
        fold_elementwise(node, elementwise->op);
    }
    return changed_;
  }

 private:
  bool fold_empty(graph::Node& node) {
    const auto* reduce = node.as<graph::Reduce>();
    if (node.results.size() != 1 || (!reduce && !node.as<graph::Elementwise>())) return false;
    const graph::Value& value = graph_.values[node.results[0]];
    if (is_opaque(value.dtype)) return false;
    std::optional<Scalar> all = has_no_elements(value) ? std::optional(Scalar::from_real(DType::F64, 0)) : std::nullopt;
    if (!all && reduce) {
      const graph::Value& operand = graph_.values[std::get<ValueId>(node.operands.at(0))];
      if (has_no_elements(operand)) all = empty_value(reduce->reduction, operand.dtype);
    }
    if (!all) return false;
    make_full(node, *all);
    return true;
  }

  static bool has_no_elements(const graph::Value& value) {
    return std::any_of(value.sizes.begin(), value.sizes.end(), [](sym::Expr n) { return n.is_constant(0); });
  }

  // A view that leaves the graph must go on sharing its base's storage.
  void fold_view(graph::Node& node) {
    auto operand = std::get<ValueId>(node.operands.at(0));
    graph::NodeId producer = graph_.values[operand].producer;
    if (escaping_[node.results[0]] || !producer.valid() || !graph_.nodes[producer].as<graph::Full>()) return;
    graph::Value& value = graph_.values[node.results[0]];
    if (value.layout.kind == graph::Layout::Kind::Fixed) return;
    node.operands = graph_.nodes[producer].operands;
    node.kind = graph::Full{};
    value.layout.strides = graph::contiguous_strides(value.sizes);
    changed_ = true;
  }

  void fold_elementwise(graph::Node& node, ScalarOp op) {
    const ScalarOpInfo& row = info(op);
    if (row.rule == TypeRule::Identity) return;  // a copy is asked for
    const DType dtype = graph::operand_dtype(graph_, op, node.operands), compute = compute_type(dtype);
    std::vector<graph::Operand> operands = node.operands;
    bool found = false;
    for (size_t i = 0; i < operands.size(); ++i) {
      const auto* id = std::get_if<ValueId>(&operands[i]);
      if (!id) continue;
      const bool condition = row.rule == TypeRule::Select && i == 0;
      auto constant = constant_elements(graph_, *id, condition ? DType::Bool : compute);
      if (!constant || (condition && !std::holds_alternative<Scalar>(*constant))) continue;
      operands[i] = *constant;
      found = true;
    }
    if (evaluate_node(node, op, operands) || (row.rule == TypeRule::Select && choose(node, operands))) return;
    if (!found || row.rule == TypeRule::Cast || !still_typed(node, op, operands, dtype)) return;
    node.operands = std::move(operands);
    changed_ = true;
  }

  // A condition that is constant leaves one of the two operands.
  bool choose(graph::Node& node, const std::vector<graph::Operand>& operands) {
    const auto* condition = std::get_if<Scalar>(&operands[0]);
    if (!condition) return false;
    const graph::Operand& chosen = operands[condition->truth() ? 1 : 2];
    const graph::Value& result = graph_.values[node.results[0]];
    if (const auto* scalar = std::get_if<Scalar>(&chosen)) {
      make_full(node, *scalar);
      return true;
    }
    const auto* id = std::get_if<ValueId>(&chosen);
    if (!id || !same_kind_of_tensor(graph_.values[*id], result)) return false;
    node.kind = graph::Elementwise{ScalarOp::Identity};
    node.operands = {*id};
    changed_ = true;
    return true;
  }

  bool same_kind_of_tensor(const graph::Value& a, const graph::Value& b) const {
    return a.dtype == b.dtype && a.device == b.device && graph::same_sizes(graph_.assumptions, a.sizes, b.sizes);
  }

  // The tensors that are left must say the result's dtype, sizes and device.
  bool still_typed(const graph::Node& node, ScalarOp op, const std::vector<graph::Operand>& operands, DType dtype) const {
    const graph::Value& value = graph_.values[node.results[0]];
    for (const graph::Operand& operand : operands)
      if (const auto* id = std::get_if<ValueId>(&operand);
          id && graph_.values[*id].sizes.size() == value.sizes.size() && graph_.values[*id].device == value.device)
        return graph::operand_dtype(graph_, op, operands) == dtype;
    return false;
  }

  bool evaluate_node(graph::Node& node, ScalarOp op, const std::vector<graph::Operand>& operands) {
    std::vector<Scalar> scalars;
    for (const graph::Operand& operand : operands) {
      const auto* scalar = std::get_if<Scalar>(&operand);
      if (!scalar) return false;
      scalars.push_back(*scalar);
    }
    const graph::Value& value = graph_.values[node.results[0]];
    if (is_opaque(value.dtype) || !can_evaluate(op, scalars, value.dtype)) return false;
    make_full(node, evaluate(op, scalars, value.dtype));
    return true;
  }

  void make_full(graph::Node& node, const Scalar& element) {
    const graph::Value& value = graph_.values[node.results[0]];
    node.kind = graph::Full{};
    node.operands = {cast(cast(element, value.dtype), compute_type(value.dtype))};
    changed_ = true;
  }

  graph::Graph& graph_;
  const IdVector<ValueId, char> escaping_;
  bool changed_ = false;
};

}  // namespace

bool fold_constants(graph::Graph& graph, const Options&) { return ConstantFolder(graph).run(); }

}  // namespace cxxinductor::passes
