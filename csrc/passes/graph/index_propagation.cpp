#include "passes/graph/index_propagation.h"

#include <algorithm>

#include "ir/graph/infer.h"
#include "ir/library_ops.h"
#include "support/error.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;
using sym::Expr;

// Steps from a value to where its elements come from. A graph's values may be shared, so that paths are many more.
constexpr int most_steps = 400;

std::optional<Expr> expression(const ScalarOrExpr& number) {
  if (const auto* e = std::get_if<Expr>(&number)) return *e;
  const Scalar& scalar = std::get<Scalar>(number);
  return scalar.dtype() == DType::I64 ? std::optional(Expr(scalar.integer())) : std::nullopt;
}

// Constant expressions as scalars, so that there is one form of each number.
ScalarOrExpr normal(Expr e) {
  if (e.is_constant()) return Scalar::from_integer(DType::I64, e.constant());
  return e;
}

// The prefix is kept from the symbols of graphs, and no statement's where no number follows.
Expr variable(std::string_view name, size_t number) { return Expr::symbol(fmt::format("stmt.{}.{}", name, number)); }

Scalar truth(bool value) { return Scalar::from_integer(DType::Bool, value); }

}  // namespace

bool is_running_sum(const graph::Node& node) {
  const auto* call = node.as<graph::Extern>();
  return call && is_call_of(*call, OpFamily::RunningSum) && node.results.size() == 1;
}

IndexPropagation::IndexPropagation(const graph::Graph& graph) : graph_(graph), space_(graph.assumptions) {}

std::vector<Expr> IndexPropagation::position(ValueId id) {
  Coords variables;
  for (size_t d = 0; d < graph_.values[id].sizes.size(); ++d) variables.push_back(variable("position", d));
  return variables;
}

const loops::Space& IndexPropagation::space(ValueId id) {
  space_ = loops::Space(graph_.assumptions);
  const Coords variables = position(id);
  for (size_t d = 0; d < variables.size(); ++d) space_.add(variables[d], graph_.values[id].sizes[d]);
  return space_;
}

std::optional<Element> IndexPropagation::of(ValueId id) {
  space(id);
  budget_ = most_steps;
  return at(id, position(id));
}

bool IndexPropagation::in_range(graph::NodeId gather, size_t k) {
  const graph::Node& node = graph_.nodes[gather];
  const auto& kind = std::get<graph::Gather>(node.kind);
  const auto index = std::get<ValueId>(node.operands.at(k + 1));
  const auto element = of(index);
  if (!element || element->condition) return false;
  const auto e = expression(element->value);
  const auto dim = std::find(kind.source.begin(), kind.source.end(), -1 - static_cast<int>(k)) - kind.source.begin();
  return e && space_.in_range(*e, graph_.values[std::get<ValueId>(node.operands[0])].sizes[static_cast<size_t>(dim)]);
}

std::optional<Element> IndexPropagation::at(ValueId id, const Coords& coords) {
  const graph::Value& value = graph_.values[id];
  if (--budget_ < 0 || !value.producer.valid()) return std::nullopt;
  const graph::Node& node = graph_.nodes[value.producer];
  const auto operand = [&] { return std::get<ValueId>(node.operands[0]); };
  if (const auto* elementwise_op = node.as<graph::Elementwise>()) return elementwise(node, elementwise_op->op, coords);
  if (node.as<graph::Full>()) return at_operand(node.operands[0], value.dtype, value, coords);
  if (const auto* iota = node.as<graph::Iota>()) {
    if (value.dtype != DType::I64) return std::nullopt;
    return Element{normal(space_.simplify(iota->start + iota->step * coords[0])), {}, {}};
  }
  if (const auto* permute = node.as<graph::Permute>()) {
    Coords source(coords.size());
    for (size_t d = 0; d < coords.size(); ++d) source[static_cast<size_t>(permute->dims[d])] = coords[d];
    return at(operand(), source);
  }
  if (node.as<graph::Reshape>()) return reshaped(value, operand(), coords);
  if (node.as<graph::Expand>()) {
    const std::vector<Expr>& sizes = graph_.values[operand()].sizes;
    Coords source(coords.end() - static_cast<std::ptrdiff_t>(sizes.size()), coords.end());
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d].is_constant(1)) source[d] = 0;
    return at(operand(), source);
  }
  Coords source = coords;
  if (const auto* slice = node.as<graph::Slice>()) {
    Expr& c = source[static_cast<size_t>(slice->dim)];
    c = space_.simplify(slice->start + slice->step * c);
    return at(operand(), source);
  }
  if (const auto* flip = node.as<graph::Flip>()) {
    for (int dim : flip->dims) {
      Expr& c = source[static_cast<size_t>(dim)];
      c = value.sizes[static_cast<size_t>(dim)] - 1 - c;
    }
    return at(operand(), source);
  }
  if (const auto* pad = node.as<graph::Pad>()) {
    for (size_t d = 0; d < source.size(); ++d) {
      source[d] = space_.simplify(source[d] - pad->low[d]);
      if (!space_.in_range(source[d], graph_.values[operand()].sizes[d])) return std::nullopt;
    }
    return at(operand(), source);
  }
  if (const auto* cat = node.as<graph::Cat>()) return concatenated(node, *cat, coords);
  if (const auto* gather = node.as<graph::Gather>()) return gathered(node, *gather, coords);
  if (is_running_sum(node)) return summed(node, coords);
  if (const auto* reduce = node.as<graph::Reduce>(); reduce && reduce->reduction == Reduction::Sum) {
    const std::vector<Expr>& sizes = graph_.values[operand()].sizes;
    Coords whole;
    for (size_t d = 0, kept = 0; d < sizes.size(); ++d) {
      const bool reduced = reduce->dims.empty() || std::find(reduce->dims.begin(), reduce->dims.end(), static_cast<int>(d)) != reduce->dims.end();
      whole.push_back(reduced ? variable("reduced", reduced_++) : coords[kept]);
      if (reduced) space_.add(whole.back(), sizes[d]);
      kept += !reduced || reduce->keepdim;
    }
    return summed(node, whole);
  }
  return std::nullopt;
}

// dtype: that an immediate has (the operand's own, for tensors).
std::optional<Element> IndexPropagation::at_operand(const graph::Operand& operand, DType dtype, const graph::Value& result, const Coords& coords) {
  if (const auto* scalar = std::get_if<Scalar>(&operand)) return Element{cast(*scalar, dtype), {}, {}};
  if (const auto* e = std::get_if<Expr>(&operand)) return dtype == DType::I64 ? std::optional(Element{normal(*e), {}, {}}) : std::nullopt;
  const auto id = std::get<ValueId>(operand);
  return at(id, graph_.values[id].sizes.size() == result.sizes.size() ? coords : Coords{});
}

std::optional<Element> IndexPropagation::elementwise(const graph::Node& node, ScalarOp op, const Coords& coords) {
  const graph::Value& result = graph_.values[node.results[0]];
  if (is_opaque(result.dtype)) return std::nullopt;
  const DType immediates = compute_type(graph::operand_dtype(graph_, op, node.operands));
  std::vector<Element> operands;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const bool condition = info(op).rule == TypeRule::Select && i == 0;
    const auto element = at_operand(node.operands[i], condition ? DType::Bool : immediates, result, coords);
    if (!element) return std::nullopt;
    operands.push_back(*element);
  }
  return combined(op, operands, result.dtype);
}

std::optional<Element> IndexPropagation::combined(ScalarOp op, const std::vector<Element>& operands, DType dtype) {
  std::optional<Element::Condition> condition;
  for (const Element& operand : operands) {
    if (!operand.condition) continue;
    if (condition && *condition != *operand.condition) return std::nullopt;
    condition = operand.condition;
  }
  std::vector<ScalarOrExpr> where, elsewhere;
  for (const Element& operand : operands) {
    where.push_back(operand.value);
    elsewhere.push_back(operand.condition ? operand.other : operand.value);
  }
  const auto value = applied(op, where, dtype);
  if (!value && !condition && operands.size() == 2) {
    const auto a = expression(where[0]), b = expression(where[1]);
    return a && b ? compared(op, *a, *b) : std::nullopt;
  }
  if (!value || !condition) return value ? std::optional(Element{*value, {}, {}}) : std::nullopt;
  const auto other = applied(op, elsewhere, dtype);
  if (!other) return std::nullopt;
  if (equal(*value, *other)) return Element{*value, {}, {}};
  return Element{*value, condition, *other};
}

// Of numbers, without conditions.
std::optional<ScalarOrExpr> IndexPropagation::applied(ScalarOp op, const std::vector<ScalarOrExpr>& operands, DType dtype) {
  const bool constant = std::all_of(operands.begin(), operands.end(), [](const ScalarOrExpr& n) { return std::holds_alternative<Scalar>(n); });
  if (constant) {
    std::vector<Scalar> scalars;
    for (const ScalarOrExpr& number : operands) {
      const auto& scalar = std::get<Scalar>(number);
      scalars.push_back(cast(scalar, compute_type(scalar.dtype())));
    }
    if (!can_evaluate(op, scalars, dtype)) return std::nullopt;
    return cast(evaluate(op, scalars, dtype), dtype);
  }
  if (op == ScalarOp::Where) {
    const auto* condition = std::get_if<Scalar>(&operands[0]);
    return condition ? std::optional(operands[condition->truth() ? 1 : 2]) : std::nullopt;
  }
  std::vector<Expr> e;
  for (const ScalarOrExpr& number : operands) {
    const auto one = expression(number);
    if (!one) return std::nullopt;
    e.push_back(*one);
  }
  if (op == ScalarOp::Identity || (op == ScalarOp::Cast && dtype == DType::I64)) return operands[0];
  if (op == ScalarOp::Neg && space_.fits_i64(e[0])) return normal(-e[0]);
  if (const auto value = space_.apply(op, e[0], e.back())) return normal(space_.simplify(*value));
  const auto decided = dtype == DType::Bool ? space_.decide(op, e[0], e.back()) : std::nullopt;
  return decided ? std::optional<ScalarOrExpr>(truth(*decided)) : std::nullopt;
}

std::optional<Element> IndexPropagation::compared(ScalarOp op, Expr a, Expr b) {
  if (!space_.fits_i64(a) || !space_.fits_i64(b)) return std::nullopt;
  if (op == ScalarOp::Le) return Element{truth(true), {{a, b}}, truth(false)};
  if (op == ScalarOp::Lt) return Element{truth(true), {{a + 1, b}}, truth(false)};
  if (op == ScalarOp::Ge) return Element{truth(true), {{b, a}}, truth(false)};
  if (op == ScalarOp::Gt) return Element{truth(true), {{b + 1, a}}, truth(false)};
  return std::nullopt;
}

// Reshapes that add and remove dimensions of one element.
std::optional<Element> IndexPropagation::reshaped(const graph::Value& result, ValueId operand, const Coords& coords) {
  const std::vector<Expr>& sizes = graph_.values[operand].sizes;
  Coords source(sizes.size(), 0);
  size_t d = 0;
  for (size_t s = 0; s < sizes.size(); ++s) {
    if (sizes[s].is_constant(1)) continue;
    while (d < coords.size() && result.sizes[d].is_constant(1)) ++d;
    if (d == coords.size() || !space_.equal(sizes[s], result.sizes[d])) return std::nullopt;
    source[s] = coords[d++];
  }
  return at(operand, source);
}

// The operand that the position lies in; or one formula that holds in all of them, as where a row of positions gets its
// first one's predecessor before it.
std::optional<Element> IndexPropagation::concatenated(const graph::Node& node, const graph::Cat& cat, const Coords& coords) {
  const auto dim = static_cast<size_t>(cat.dim);
  std::vector<Expr> starts{0};
  for (const graph::Operand& operand : node.operands) starts.push_back(starts.back() + graph_.values[std::get<ValueId>(operand)].sizes[dim]);
  const auto in_piece = [&](size_t k, Expr position) {
    Coords source = coords;
    source[dim] = space_.simplify(position - starts[k]);
    return at(std::get<ValueId>(node.operands[k]), source);
  };
  size_t general = 0;
  for (size_t k = 0; k < node.operands.size(); ++k) {
    if (space_.at_least(coords[dim], starts[k]) && space_.at_least(starts[k + 1] - 1, coords[dim])) return in_piece(k, coords[dim]);
    if (!(starts[k + 1] - starts[k]).is_constant(1)) general = k;
  }
  const auto formula = in_piece(general, coords[dim]);
  for (size_t k = 0; k < node.operands.size() && formula; ++k) {
    if (k == general) continue;
    const Expr position = (starts[k + 1] - starts[k]).is_constant(1) ? starts[k] : coords[dim];
    const auto here = in_piece(k, position), there = in_piece(general, position);
    if (!here || !there || !equal(*here, *there)) return std::nullopt;
  }
  return formula;
}

std::optional<Element> IndexPropagation::gathered(const graph::Node& node, const graph::Gather& gather, const Coords& coords) {
  const auto x = std::get<ValueId>(node.operands[0]);
  Coords index_coords, source;
  for (int dim : gather.index_dims) index_coords.push_back(coords[static_cast<size_t>(dim)]);
  for (size_t d = 0; d < gather.source.size(); ++d) {
    if (gather.source[d] >= 0) {
      source.push_back(coords[static_cast<size_t>(gather.source[d])]);
      continue;
    }
    const auto index = at(std::get<ValueId>(node.operands[static_cast<size_t>(-gather.source[d])]), index_coords);
    const auto e = index && !index->condition ? expression(index->value) : std::nullopt;
    if (!e || !space_.in_range(*e, graph_.values[x].sizes[d])) return std::nullopt;
    source.push_back(*e);
  }
  return at(x, source);
}

// Sums of zeros: what is left of a search for the ends of sequences that are packed into rows, where there are none.
std::optional<Element> IndexPropagation::summed(const graph::Node& node, const Coords& operand_coords) {
  const auto* x = node.operands.empty() ? nullptr : std::get_if<ValueId>(&node.operands[0]);
  const auto element = x ? at(*x, operand_coords) : std::nullopt;
  const Scalar* scalar = element ? element->constant() : nullptr;
  if (scalar == nullptr || scalar->truth()) return std::nullopt;
  return Element{Scalar::from_integer(graph_.values[node.results[0]].dtype, 0), {}, {}};
}

bool IndexPropagation::equal(const ScalarOrExpr& a, const ScalarOrExpr& b) const {
  const auto x = expression(a), y = expression(b);
  return x && y ? space_.equal(*x, *y) : a == b;
}

bool IndexPropagation::equal(const Element& a, const Element& b) const {
  if (a.condition.has_value() != b.condition.has_value() || !equal(a.value, b.value)) return false;
  if (!a.condition) return true;
  return space_.equal(a.condition->b - a.condition->a, b.condition->b - b.condition->a) && equal(a.other, b.other);
}

}  // namespace cxxinductor::passes
