#include "ir/graph/infer.h"

#include <algorithm>

#include "ir/device_types.h"
#include "ir/graph/node_traits.h"
#include "ir/strides.h"
#include "ir/text_parts.h"
#include "support/error.h"

namespace cxxinductor::graph {
namespace {

using Sizes = std::vector<sym::Expr>;

Value typed(DType dtype, Device device, Sizes sizes) {
  Value value;
  value.dtype = dtype;
  value.device = device;
  value.layout.strides = contiguous_strides(sizes);
  value.sizes = std::move(sizes);
  return value;
}

// The rules, one a kind. `operands` were checked to name values of the graph.
struct Inference {
  const Graph& graph;
  const std::vector<Operand>& operands;
  const Value& declared;

  const Value& tensor(size_t i, const char* what) const {
    if (i >= operands.size()) throw_user_error("{} expects {} or more operands, found {}", what, i + 1, operands.size());
    const auto* id = std::get_if<ValueId>(&operands[i]);
    if (!id) throw_user_error("{} expects a tensor as operand {}, found an immediate", what, i);
    return graph.values[*id];
  }
  const Value& only_tensor(const char* what) const {
    if (operands.size() != 1) throw_user_error("{} expects 1 operand, found {}", what, operands.size());
    return tensor(0, what);
  }
  static void check_dim(int dim, size_t rank, const char* what) {
    if (dim < 0 || static_cast<size_t>(dim) >= rank) throw_user_error("{} expects a dimension in [0, {}), found {}", what, rank, dim);
  }
  static void check_sorted_unique(const std::vector<int>& dims, size_t rank, const char* what) {
    for (size_t i = 0; i < dims.size(); ++i) {
      check_dim(dims[i], rank, what);
      if (i && dims[i - 1] >= dims[i]) throw_user_error("{} expects sorted, distinct dimensions", what);
    }
  }

  std::vector<Value> operator()(const Elementwise& e) const {
    const ScalarOpInfo& row = info(e.op);
    DType dtype = operand_dtype(graph, e.op, operands);
    if (row.rule == TypeRule::Cast && (is_opaque(dtype) || is_opaque(declared.dtype)))
      throw_user_error("cast from {} to {} is not an elementwise op", to_string(dtype), to_string(declared.dtype));
    const Value* shape = nullptr;
    const Value* place = nullptr;
    for (const Operand& operand : operands) {
      const auto* id = std::get_if<ValueId>(&operand);
      if (!id) continue;
      const Value& value = graph.values[*id];
      if (!place || (place->sizes.empty() && !value.sizes.empty()) || (place->sizes.empty() && in_host_memory(place->device))) place = &value;
      if (value.sizes.empty()) continue;
      if (shape && !same_sizes(graph.assumptions, shape->sizes, value.sizes))
        throw_user_error("{} expects operands of equal sizes, found {} and {}", row.name, print_expr_list(shape->sizes), print_expr_list(value.sizes));
      if (!shape) shape = &value;
    }
    if (!place) throw_user_error("{} expects a tensor among its operands", row.name);
    // Kernels of any device take numbers in the host's memory.
    const bool anywhere = place->sizes.empty() && in_host_memory(place->device);
    return {typed(result_dtype(e.op, dtype, declared.dtype), anywhere ? declared.device : place->device, shape ? shape->sizes : Sizes{})};
  }

  std::vector<Value> operator()(const Reduce& r) const {
    const Value& x = only_tensor("reduce");
    const ReductionInfo& row = info(r.reduction);
    if (is_opaque(x.dtype)) throw_user_error("{} does not take {}", row.name, to_string(x.dtype));
    if (row.order_matters && compute_type(x.dtype) != x.dtype) throw_user_error("{} expects a compute type, found {}", row.name, to_string(x.dtype));
    check_sorted_unique(r.dims, x.sizes.size(), "reduce");
    Sizes sizes;
    for (size_t d = 0; d < x.sizes.size(); ++d) {
      bool reduced = r.dims.empty() || std::binary_search(r.dims.begin(), r.dims.end(), static_cast<int>(d));
      if (!reduced)
        sizes.push_back(x.sizes[d]);
      else if (r.keepdim)
        sizes.push_back(1);
    }
    std::vector<Value> results;
    for (const TypedName& result : form(r.reduction).results) results.push_back(typed(result.dtype(x.dtype), x.device, sizes));
    return results;
  }

  std::vector<Value> operator()(const Full&) const {
    if (operands.size() != 1 || std::holds_alternative<ValueId>(operands[0])) throw_user_error("full expects one immediate or symbolic operand");
    if (is_opaque(declared.dtype)) throw_user_error("full does not make {}", to_string(declared.dtype));
    if (const auto* scalar = std::get_if<Scalar>(&operands[0]); scalar && scalar->dtype() != compute_type(declared.dtype))
      throw_user_error("full of {} expects an immediate of its compute type, found {}", to_string(declared.dtype), to_string(scalar->dtype()));
    return {typed(declared.dtype, declared.device, declared.sizes)};
  }

  std::vector<Value> operator()(const Iota&) const {
    if (!operands.empty()) throw_user_error("iota expects no operands, found {}", operands.size());
    if (declared.sizes.size() != 1) throw_user_error("iota expects rank 1, found rank {}", declared.sizes.size());
    if (is_opaque(declared.dtype)) throw_user_error("iota does not make {}", to_string(declared.dtype));
    return {typed(declared.dtype, declared.device, declared.sizes)};
  }

  std::vector<Value> operator()(const Permute& p) const {
    const Value& x = only_tensor("permute");
    if (p.dims.size() != x.sizes.size()) throw_user_error("permute expects {} dimensions, found {}", x.sizes.size(), p.dims.size());
    std::vector<bool> seen(p.dims.size(), false);
    Value result = typed(x.dtype, x.device, x.sizes);
    for (size_t d = 0; d < p.dims.size(); ++d) {
      check_dim(p.dims[d], p.dims.size(), "permute");
      auto from = static_cast<size_t>(p.dims[d]);
      if (seen[from]) throw_user_error("permute names dimension {} twice", from);
      seen[from] = true;
      result.sizes[d] = x.sizes[from];
      result.layout.strides[d] = x.layout.strides[from];
    }
    return {result};
  }

  std::vector<Value> operator()(const Reshape&) const {
    const Value& x = only_tensor("reshape");
    sym::Expr before = element_count(x.sizes), after = element_count(declared.sizes);
    // Equality of products is often beyond proof (floor divisions of symbols), so only a proven difference is an error.
    if (prove_less(before, after, graph.assumptions).value_or(false) || prove_less(after, before, graph.assumptions).value_or(false))
      throw_user_error("reshape expects {} elements, found sizes {}", sym::to_string(before), print_expr_list(declared.sizes));
    Value result = typed(x.dtype, x.device, declared.sizes);
    if (auto strides = reshape_strides(graph.assumptions, x, declared.sizes)) result.layout.strides = *strides;
    return {result};
  }

  std::vector<Value> operator()(const Expand&) const {
    const Value& x = only_tensor("expand");
    size_t rank = declared.sizes.size(), missing = rank - x.sizes.size();
    if (rank < x.sizes.size()) throw_user_error("expand expects rank {} or more, found {}", x.sizes.size(), rank);
    Value result = typed(x.dtype, x.device, declared.sizes);
    for (size_t d = rank; d-- > 0;) {
      if (d >= missing && !x.sizes[d - missing].is_constant(1)) {
        if (!prove_equal(x.sizes[d - missing], declared.sizes[d], graph.assumptions))
          throw_user_error("expand expects size {} at dimension {}, found {}", sym::to_string(x.sizes[d - missing]), d, sym::to_string(declared.sizes[d]));
        result.layout.strides[d] = x.layout.strides[d - missing];
      } else if (!declared.sizes[d].is_constant(1)) {
        result.layout.strides[d] = 0;
      } else if (d >= missing) {
        result.layout.strides[d] = x.layout.strides[d - missing];
      } else {
        result.layout.strides[d] = d + 1 < rank ? declared.sizes[d + 1] * result.layout.strides[d + 1] : sym::Expr(1);
      }
    }
    return {result};
  }

  std::vector<Value> operator()(const Slice& s) const {
    const Value& x = only_tensor("slice");
    check_dim(s.dim, x.sizes.size(), "slice");
    auto dim = static_cast<size_t>(s.dim);
    if (declared.sizes.size() != x.sizes.size()) throw_user_error("slice expects rank {}, found {}", x.sizes.size(), declared.sizes.size());
    for (size_t d = 0; d < x.sizes.size(); ++d)
      if (d != dim && !prove_equal(x.sizes[d], declared.sizes[d], graph.assumptions))
        throw_user_error("slice expects size {} at dimension {}, found {}", sym::to_string(x.sizes[d]), d, sym::to_string(declared.sizes[d]));
    if (prove_less(s.step, 1, graph.assumptions).value_or(false)) throw_user_error("slice expects a positive step, found {}", sym::to_string(s.step));
    if (prove_less(s.start, 0, graph.assumptions).value_or(false)) throw_user_error("slice expects a start of 0 or more, found {}", sym::to_string(s.start));
    sym::Expr last = s.start + s.step * (declared.sizes[dim] - 1);
    bool empty = !prove_less(0, declared.sizes[dim], graph.assumptions).value_or(false);
    if (!empty && prove_less(x.sizes[dim] - 1, last, graph.assumptions).value_or(false))
      throw_user_error("slice reaches element {} of a dimension of {}", sym::to_string(last), sym::to_string(x.sizes[dim]));
    Value result = typed(x.dtype, x.device, declared.sizes);
    result.layout.strides = x.layout.strides;
    result.layout.strides[dim] = x.layout.strides[dim] * s.step;
    return {result};
  }

  std::vector<Value> operator()(const Flip& f) const {
    const Value& x = only_tensor("flip");
    check_sorted_unique(f.dims, x.sizes.size(), "flip");
    return {typed(x.dtype, x.device, x.sizes)};
  }

  std::vector<Value> operator()(const Pad& p) const {
    const Value& x = only_tensor("pad");
    if (p.low.size() != x.sizes.size() || declared.sizes.size() != x.sizes.size())
      throw_user_error("pad expects rank {}, found {} amounts and rank {}", x.sizes.size(), p.low.size(), declared.sizes.size());
    if (p.fill.dtype() != x.dtype) throw_user_error("pad of {} expects a fill of that dtype, found {}", to_string(x.dtype), to_string(p.fill.dtype()));
    return {typed(x.dtype, x.device, declared.sizes)};
  }

  std::vector<Value> operator()(const Cat& c) const {
    const Value& first = tensor(0, "cat");
    check_dim(c.dim, first.sizes.size(), "cat");
    auto dim = static_cast<size_t>(c.dim);
    Sizes sizes = first.sizes;
    for (size_t i = 1; i < operands.size(); ++i) {
      const Value& x = tensor(i, "cat");
      if (x.dtype != first.dtype || x.sizes.size() != sizes.size())
        throw_user_error("cat expects {} of rank {} as operand {}, found {} of rank {}", to_string(first.dtype), sizes.size(), i, to_string(x.dtype),
                         x.sizes.size());
      for (size_t d = 0; d < sizes.size(); ++d)
        if (d != dim && !prove_equal(x.sizes[d], sizes[d], graph.assumptions))
          throw_user_error("cat expects sizes equal but at dimension {}, found {} and {}", dim, print_expr_list(first.sizes), print_expr_list(x.sizes));
      sizes[dim] = sizes[dim] + x.sizes[dim];
    }
    return {typed(first.dtype, first.device, std::move(sizes))};
  }

  std::vector<Value> operator()(const Gather& g) const {
    const Value& x = tensor(0, "gather");
    if (g.source.size() != x.sizes.size()) throw_user_error("gather expects {} source entries, found {}", x.sizes.size(), g.source.size());
    size_t indices = operands.size() - 1, rank = declared.sizes.size();
    for (size_t k = 0; k < indices; ++k) {
      const Value& index = tensor(k + 1, "gather");
      if (!is_integer(index.dtype)) throw_user_error("gather expects an integer index, found {}", to_string(index.dtype));
      if (index.sizes.size() != g.index_dims.size()) throw_user_error("gather expects indices of rank {}, found {}", g.index_dims.size(), index.sizes.size());
    }
    for (int from : g.source)
      if (from < 0 ? static_cast<size_t>(-1 - from) >= indices : static_cast<size_t>(from) >= rank)
        throw_user_error("gather source {} is out of range: {} indices, result rank {}", from, indices, rank);
    for (size_t e = 0; e < g.index_dims.size(); ++e) {
      check_dim(g.index_dims[e], rank, "gather index_dims");
      for (size_t k = 0; k < indices; ++k)
        if (const Value& index = tensor(k + 1, "gather"); !prove_equal(index.sizes[e], declared.sizes[static_cast<size_t>(g.index_dims[e])], graph.assumptions))
          throw_user_error("gather index {} has sizes {}, result {}", k, print_expr_list(index.sizes), print_expr_list(declared.sizes));
    }
    return {typed(x.dtype, x.device, declared.sizes)};
  }

  // Every source dimension must be named: along any other, several elements would write one coordinate.
  void check_scatter_dims(const Scatter& s, const Value& base, const Value& source) const {
    const size_t rank = source.sizes.size(), indices = operands.size() - 2;
    std::vector<int> named(rank, 0);
    for (size_t d = 0; d < s.target.size(); ++d) {
      const int from = s.target[d];
      if (from < 0 ? static_cast<size_t>(-1 - from) >= indices : static_cast<size_t>(from) >= rank)
        throw_user_error("scatter target {} is out of range: {} indices, source rank {}", from, indices, rank);
      if (from >= 0 && ++named[static_cast<size_t>(from)] > 1) throw_user_error("scatter names source dimension {} twice", from);
      if (from < 0 && (!s.start[d].is_constant(0) || !s.step[d].is_constant(1))) throw_user_error("scatter expects start 0 and step 1 where an index decides");
      if (from >= 0) check_scatter_range(s, d, base, source);
    }
    for (int d : s.index_dims) {
      check_dim(d, rank, "scatter index_dims");
      ++named[static_cast<size_t>(d)];
    }
    for (size_t d = 0; d < rank; ++d)
      if (named[d] == 0) throw_user_error("scatter does not say where source dimension {} goes", d);
  }
  void check_scatter_range(const Scatter& s, size_t d, const Value& base, const Value& source) const {
    const sym::Expr count = source.sizes[static_cast<size_t>(s.target[d])];
    if (prove_less(s.step[d], 1, graph.assumptions).value_or(false) || prove_less(s.start[d], 0, graph.assumptions).value_or(false))
      throw_user_error("scatter expects a start of 0 or more and a positive step, found {} and {}", sym::to_string(s.start[d]), sym::to_string(s.step[d]));
    const sym::Expr last = s.start[d] + s.step[d] * (count - 1);
    const bool empty = !prove_less(0, count, graph.assumptions).value_or(false);
    if (!empty && prove_less(base.sizes[d] - 1, last, graph.assumptions).value_or(false))
      throw_user_error("scatter reaches element {} of a dimension of {}", sym::to_string(last), sym::to_string(base.sizes[d]));
  }

  std::vector<Value> operator()(const Scatter& s) const {
    const Value &base = tensor(0, "scatter"), &source = tensor(1, "scatter");
    const size_t rank = base.sizes.size();
    if (s.target.size() != rank || s.start.size() != rank || s.step.size() != rank)
      throw_user_error("scatter expects {} targets, starts and steps, found {}, {} and {}", rank, s.target.size(), s.start.size(), s.step.size());
    if (source.dtype != base.dtype || source.device != base.device)
      throw_user_error("scatter into {} on {} expects a source of that, found {} on {}", to_string(base.dtype), to_string(base.device), to_string(source.dtype),
                       to_string(source.device));
    if (!accepts(s.combine, base.dtype)) throw_user_error("scatter does not {} {}", name_of(s.combine), to_string(base.dtype));
    if (operands.size() == 2 && !s.index_dims.empty()) throw_user_error("scatter has index_dims and no index");
    for (size_t k = 2; k < operands.size(); ++k) {
      const Value& index = tensor(k, "scatter");
      if (!is_integer(index.dtype)) throw_user_error("scatter expects an integer index, found {}", to_string(index.dtype));
      if (index.sizes.size() != s.index_dims.size()) throw_user_error("scatter expects indices of rank {}, found {}", s.index_dims.size(), index.sizes.size());
      for (size_t e = 0; e < s.index_dims.size(); ++e) {
        check_dim(s.index_dims[e], source.sizes.size(), "scatter index_dims");
        if (!prove_equal(index.sizes[e], source.sizes[static_cast<size_t>(s.index_dims[e])], graph.assumptions))
          throw_user_error("scatter index {} has sizes {}, the source {}", k - 2, print_expr_list(index.sizes), print_expr_list(source.sizes));
      }
    }
    check_scatter_dims(s, base, source);
    Value result = typed(base.dtype, base.device, base.sizes);
    if (s.inplace) result.layout.strides = base.layout.strides;
    return {result};
  }

  std::vector<Value> operator()(const Extern& e) const { throw_internal("results of extern {} are declared, never inferred", e.callee); }
};

}  // namespace

bool declares_sizes(const NodeKind& kind) {
  return std::visit([]<class Kind>(const Kind&) { return NodeTraits<Kind>::declares != Declares::Nothing; }, kind);
}

bool same_sizes(const sym::Assumptions& assumptions, const Sizes& a, const Sizes& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](sym::Expr x, sym::Expr y) { return x == y || prove_equal(x, y, assumptions); });
}

Sizes broadcast_sizes(const sym::Assumptions& assumptions, const Sizes& a, const Sizes& b) {
  const Sizes& longer = a.size() >= b.size() ? a : b;
  const Sizes& shorter = a.size() >= b.size() ? b : a;
  Sizes result = longer;
  size_t missing = longer.size() - shorter.size();
  for (size_t d = 0; d < shorter.size(); ++d) {
    sym::Expr& size = result[d + missing];
    if (shorter[d].is_constant(1)) continue;
    if (size.is_constant(1))
      size = shorter[d];
    else if (!prove_equal(size, shorter[d], assumptions))
      throw_user_error("sizes {} and {} do not broadcast", print_expr_list(a), print_expr_list(b));
  }
  return result;
}

std::optional<DType> immediate_dtype(const Graph& graph, ScalarOp op, const std::vector<Operand>& operands) {
  for (size_t i = info(op).rule == TypeRule::Select ? 1 : 0; i < operands.size(); ++i)
    if (const auto* id = std::get_if<ValueId>(&operands[i])) return compute_type(graph.values[*id].dtype);
  return std::nullopt;
}

DType operand_dtype(const Graph& graph, ScalarOp op, const std::vector<Operand>& operands) {
  const ScalarOpInfo& row = info(op);
  if (operands.size() != static_cast<size_t>(row.arity)) throw_user_error("{} expects {} operands, found {}", row.name, row.arity, operands.size());
  size_t first = row.rule == TypeRule::Select ? 1 : 0;
  if (first == 1) {
    const auto* id = std::get_if<ValueId>(&operands[0]);
    const auto* scalar = std::get_if<Scalar>(&operands[0]);
    if ((id && graph.values[*id].dtype != DType::Bool) || (scalar && scalar->dtype() != DType::Bool) || (!id && !scalar))
      throw_user_error("{} expects a bool condition", row.name);
  }
  // Tensors of rank 1 and more decide; then rank-0 values, of which one in the compute type may accompany a narrower
  // one; then immediates.
  std::optional<DType> dtype, scalar_dtype, immediate;
  for (size_t i = first; i < operands.size(); ++i) {
    if (const auto* id = std::get_if<ValueId>(&operands[i])) {
      const Value& value = graph.values[*id];
      if (!value.sizes.empty() && !dtype) dtype = value.dtype;
      if (value.sizes.empty() && (!scalar_dtype || compute_type(value.dtype) == *scalar_dtype)) scalar_dtype = value.dtype;
    } else if (const auto* scalar = std::get_if<Scalar>(&operands[i])) {
      if (!immediate) immediate = scalar->dtype();
    } else if (!immediate) {
      immediate = DType::I64;
    }
  }
  DType found = dtype ? *dtype : scalar_dtype ? *scalar_dtype : *immediate;
  for (size_t i = first; i < operands.size(); ++i) {
    if (const auto* id = std::get_if<ValueId>(&operands[i])) {
      const Value& value = graph.values[*id];
      if (value.dtype != found && !(value.sizes.empty() && value.dtype == compute_type(found)))
        throw_user_error("{} expects operands of one dtype, found {} and {}", row.name, to_string(found), to_string(value.dtype));
    } else if (const auto* scalar = std::get_if<Scalar>(&operands[i]); scalar && scalar->dtype() != compute_type(found) && row.rule != TypeRule::Cast) {
      throw_user_error("{} on {} expects immediates of {}, found {}", row.name, to_string(found), to_string(compute_type(found)), to_string(scalar->dtype()));
    }
  }
  if (row.rule != TypeRule::Identity && !accepts(row.types, found)) throw_user_error("{} does not take {}", row.name, to_string(found));
  return found;
}

std::optional<Sizes> reshape_strides(const sym::Assumptions& any_assumptions, const Value& operand, const Sizes& sizes) {
  const sym::Assumptions assumptions = assume_nonempty(operand.sizes, any_assumptions);
  const Sizes& old_sizes = operand.sizes;
  const Sizes& old_strides = operand.layout.strides;
  if (old_strides == contiguous_strides(old_sizes)) return contiguous_strides(sizes);
  Sizes strides(sizes.size());
  size_t left = sizes.size();  // result dimensions not yet given a stride, from the right
  sym::Expr base = old_strides.back(), old_count = 1, new_count = 1;
  // Walk runs of operand dimensions that lie like one dimension in memory; each must be covered by whole result
  // dimensions.
  for (size_t d = old_sizes.size(); d-- > 0;) {
    old_count = old_count * old_sizes[d];
    bool run_ends = d == 0 || (!old_sizes[d - 1].is_constant(1) && !prove_equal(old_strides[d - 1], old_count * base, assumptions));
    if (!run_ends) continue;
    while (left > 0 && (!prove_equal(new_count, old_count, assumptions) || sizes[left - 1].is_constant(1))) {
      --left;
      strides[left] = new_count * base;
      new_count = new_count * sizes[left];
    }
    if (!prove_equal(new_count, old_count, assumptions)) return std::nullopt;
    if (d > 0) {
      base = old_strides[d - 1];
      old_count = new_count = 1;
    }
  }
  if (left > 0) return std::nullopt;
  return strides;
}

std::vector<Value> infer_results(const Graph& graph, const NodeKind& kind, const std::vector<Operand>& operands, const Value& declared) {
  for (const Operand& operand : operands)
    if (const auto* id = std::get_if<ValueId>(&operand); id && !graph.values.contains(*id)) throw_user_error("an operand names no value of the graph");
  return std::visit(Inference{graph, operands, declared}, kind);
}

}  // namespace cxxinductor::graph
