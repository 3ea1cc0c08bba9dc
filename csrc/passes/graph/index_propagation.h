// Elements of values as functions of their position, where they follow from it alone: positions of tokens, differences of
// them, masks.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/loops/index_algebra.h"

namespace cxxinductor::passes {

// A number of the value's dtype; i64 ones as expressions.
using ScalarOrExpr = std::variant<Scalar, sym::Expr>;

// `value`, or with a condition: `value` where a <= b and `otherwise` elsewhere.
struct Element {
  struct Condition {
    sym::Expr a, b;
    friend bool operator==(const Condition&, const Condition&) = default;
  };
  ScalarOrExpr value;
  std::optional<Condition> condition;
  ScalarOrExpr other;  // read with a condition alone

  const Scalar* constant() const { return condition ? nullptr : std::get_if<Scalar>(&value); }
};

bool is_running_sum(const graph::Node& node);  // a call of cumsum

class IndexPropagation {
 public:
  // Keeps a reference to the graph.
  explicit IndexPropagation(const graph::Graph& graph);

  // The element of `id` at position(id); nothing where it depends on data, or nothing is proven.
  std::optional<Element> of(graph::ValueId id);
  std::vector<sym::Expr> position(graph::ValueId id);  // one variable a dimension
  // Of the variables of positions of `id`. Valid until the next call.
  const loops::Space& space(graph::ValueId id);

  // The operand of a gather that is index k stays inside the source's sizes, and is not negative.
  bool in_range(graph::NodeId gather, size_t k);

 private:
  using Coords = std::vector<sym::Expr>;
  std::optional<Element> at(graph::ValueId id, const Coords& coords);
  std::optional<Element> at_operand(const graph::Operand& operand, DType dtype, const graph::Value& result, const Coords& coords);
  std::optional<Element> elementwise(const graph::Node& node, ScalarOp op, const Coords& coords);
  std::optional<Element> combined(ScalarOp op, const std::vector<Element>& operands, DType dtype);
  std::optional<ScalarOrExpr> applied(ScalarOp op, const std::vector<ScalarOrExpr>& operands, DType dtype);
  std::optional<Element> compared(ScalarOp op, sym::Expr a, sym::Expr b);
  std::optional<Element> reshaped(const graph::Value& result, graph::ValueId operand, const Coords& coords);
  std::optional<Element> concatenated(const graph::Node& node, const graph::Cat& cat, const Coords& coords);
  std::optional<Element> gathered(const graph::Node& node, const graph::Gather& gather, const Coords& coords);
  std::optional<Element> summed(const graph::Node& node, const Coords& operand_coords);
  bool equal(const Element& a, const Element& b) const;
  bool equal(const ScalarOrExpr& a, const ScalarOrExpr& b) const;

  const graph::Graph& graph_;
  loops::Space space_;
  int budget_ = 0;      // of steps that are left for a question
  size_t reduced_ = 0;  // dimensions that sums ran over, for their variables' names
};

}  // namespace cxxinductor::passes
