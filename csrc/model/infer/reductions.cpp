// Reductions and scans; their results are contiguous.
#include <algorithm>

#include "model/infer/table.h"
#include "model/promotion.h"

namespace cxxinductor::model {

Exprs reduced(const Exprs& sizes, const std::vector<int>& dims, bool keepdim) {
  Exprs result;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool is_reduced = dims.empty() || std::find(dims.begin(), dims.end(), static_cast<int>(d)) != dims.end();
    if (!is_reduced) result.push_back(sizes[d]);
    if (is_reduced && keepdim) result.push_back(1);
  }
  return result;
}

namespace {

enum class Accumulates : uint8_t { AsGiven, Wide, Real, Truth, Position, Float };

DType reduced_dtype(const InferContext& c, DType dtype, Accumulates how) {
  switch (how) {
    case Accumulates::AsGiven:
      return c.dtype("dtype").value_or(dtype);
    case Accumulates::Wide:
      return c.dtype("dtype").value_or(is_float(dtype) || is_opaque(dtype) ? dtype : DType::I64);
    case Accumulates::Real:
      return real_of(c.dtype("dtype").value_or(dtype));
    case Accumulates::Truth:
      return dtype == DType::U8 ? DType::U8 : DType::Bool;
    case Accumulates::Position:
      return DType::I64;
    case Accumulates::Float:
      return integer_to_float(dtype);
  }
  return dtype;
}

void check_dims(const InferContext& c, const std::vector<int>& dims) {
  std::vector<int> sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    c.reject("expected each dimension once, found {} twice", *twice);
}

enum class Needs : uint8_t { Nothing, Float, Elements };

Rule reduction(Accumulates how, size_t results = 1, Needs needs = Needs::Nothing) {
  return [=](InferContext& c) -> InferredResults {
    const CallValueInfo& self = c.tensor("self");
    const std::vector<int> dims = c.dims("dim", self.sizes.size());
    check_dims(c, dims);
    if (needs == Needs::Float && !c.has("dtype") && !is_float(self.dtype) && !is_complex(self.dtype))
      c.reject("expected a float or complex dtype, found {}", to_string(self.dtype));
    if (needs == Needs::Elements)
      for (size_t d = 0; d < self.sizes.size(); ++d)
        if ((dims.empty() || std::find(dims.begin(), dims.end(), static_cast<int>(d)) != dims.end()) && c.is(self.sizes[d], 0))
          c.reject("expected elements in dimension {}, found sizes {}", d, print_expr_list(self.sizes));
    const bool keepdim = c.boolean("keepdim");
    const CallValueInfo result = contiguous(reduced_dtype(c, self.dtype, how), self.device, reduced(self.sizes, dims, keepdim));
    return std::vector(results, result);
  };
}

// Values along a dimension and their positions: max.dim, sort without its order.
InferredResults infer_selection(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  const int dim = c.dim("dim", self.sizes.size());
  CallValueInfo values = contiguous_like(self, reduced(self.sizes, {dim}, c.boolean("keepdim")));
  CallValueInfo positions = values;
  positions.dtype = DType::I64;
  return std::vector{std::move(values), std::move(positions)};
}

Rule scan(Accumulates how, bool with_positions = false) {
  return [=](InferContext& c) -> InferredResults {
    const CallValueInfo& self = c.tensor("self");
    c.dim("dim", self.sizes.size());
    CallValueInfo values = contiguous(reduced_dtype(c, self.dtype, how), self.device, self.sizes);
    if (!with_positions) return std::vector{std::move(values)};
    CallValueInfo positions = values;
    positions.dtype = DType::I64;
    return std::vector{std::move(values), std::move(positions)};
  };
}

InferredResults infer_histc(InferContext& c) { return std::vector{contiguous_like(c.tensor("self"), {c.expr("bins")})}; }

// Distances between all rows of two matrices, or batches of them.
InferredResults infer_cdist(InferContext& c) {
  const CallValueInfo &a = c.tensor("x1"), &b = c.tensor("x2");
  if (a.sizes.size() < 2 || b.sizes.size() < 2) c.reject("expected matrices, found {} and {}", print_expr_list(a.sizes), print_expr_list(b.sizes));
  c.require_equal(a.sizes.back(), b.sizes.back(), "columns of the second matrix");
  Exprs sizes = c.broadcast({a.sizes.begin(), a.sizes.end() - 2}, {b.sizes.begin(), b.sizes.end() - 2});
  sizes.push_back(a.sizes[a.sizes.size() - 2]);
  sizes.push_back(b.sizes[b.sizes.size() - 2]);
  return std::vector{contiguous_like(a, sizes)};
}

InferredResults infer_pdist(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  c.require_rank(self, 2, "matrix");
  const sym::Expr rows = self.sizes[0];
  return std::vector{contiguous_like(self, {c.is(rows, 0) ? sym::Expr(0) : c.simplify(sym::floor_div(rows * (rows - 1), 2))})};
}

InferredResults infer_cdist_backward(InferContext& c) {
  const CallValueInfo &a = c.tensor("x1"), &b = c.tensor("x2");
  Exprs sizes = c.broadcast({a.sizes.begin(), a.sizes.end() - 2}, {b.sizes.begin(), b.sizes.end() - 2});
  sizes.insert(sizes.end(), a.sizes.end() - 2, a.sizes.end());
  return std::vector{contiguous_like(a, std::move(sizes))};
}

// Of each tensor of a list.
InferredResults infer_norms(InferContext& c) {
  std::vector<CallValueInfo> results;
  for (const CallValueInfo* x : c.tensors("self")) {
    if (x == nullptr) return std::nullopt;
    results.push_back(contiguous(real_of(c.dtype("dtype").value_or(x->dtype)), x->device, {}));
  }
  return results;
}

InferredResults infer_cross(InferContext& c) {
  const CallValueInfo &self = c.tensor("self"), &other = c.tensor("other");
  const Exprs sizes = c.broadcast(self.sizes, other.sizes);
  const auto dim = static_cast<size_t>(c.dim("dim", sizes.size()));
  if (sizes.empty()) c.reject("expected tensors with dimensions");
  c.require_equal(3, sizes[dim], "size of the vectors");
  const auto dtype = promote_types(self.dtype, other.dtype);
  if (!dtype) return std::nullopt;
  return std::vector{contiguous(*dtype, self.device, sizes)};
}

}  // namespace

void add_reduction_rules(RuleTable& table) {
  add_rules(table, {"aten::sum", "aten::sum.dim_IntList", "aten::nansum", "aten::prod", "aten::prod.dim_int"}, reduction(Accumulates::Wide));
  add_rules(table, {"aten::trace"}, [](InferContext& c) {
    c.require_rank(c.tensor("self"), 2, "matrix");
    return reduction(Accumulates::Wide)(c);
  });
  add_rules(table, {"aten::mean", "aten::mean.dim"}, reduction(Accumulates::AsGiven, 1, Needs::Float));
  add_rules(table, {"aten::amax", "aten::amin", "aten::max", "aten::min"}, reduction(Accumulates::AsGiven, 1, Needs::Elements));
  add_rules(table, {"aten::median", "aten::nanmedian"}, reduction(Accumulates::AsGiven));
  add_rules(table, {"aten::any", "aten::any.dim", "aten::any.dims", "aten::all", "aten::all.dim", "aten::all.dims"}, reduction(Accumulates::Truth));
  add_rules(table, {"aten::argmax", "aten::argmin", "aten::count_nonzero", "aten::count_nonzero.dim_IntList"}, reduction(Accumulates::Position));
  add_rules(table,
            {"aten::var", "aten::var.dim", "aten::var.correction", "aten::std", "aten::std.dim", "aten::std.correction", "aten::linalg_vector_norm",
             "aten::norm.Scalar", "aten::norm.ScalarOpt_dim", "aten::norm.ScalarOpt_dim_dtype", "aten::norm.ScalarOpt_dtype", "aten::dist"},
            reduction(Accumulates::Real));
  add_rules(table, {"aten::var_mean.correction", "aten::std_mean.correction"}, [](InferContext& c) -> InferredResults {
    InferredResults results = reduction(Accumulates::Real, 2)(c);
    results->back().dtype = c.tensor("self").dtype;
    return results;
  });
  add_rules(table, {"aten::aminmax"}, reduction(Accumulates::AsGiven, 2, Needs::Elements));
  add_rules(table, {"aten::logsumexp"}, reduction(Accumulates::Float));
  add_rules(table, {"aten::max.dim", "aten::min.dim", "aten::median.dim", "aten::nanmedian.dim", "aten::mode", "aten::kthvalue"}, infer_selection);
  add_rules(table, {"aten::cumsum", "aten::cumprod"}, scan(Accumulates::Wide));
  add_rules(table, {"aten::logcumsumexp"}, scan(Accumulates::AsGiven));
  add_rules(table, {"aten::cummax", "aten::cummin"}, scan(Accumulates::AsGiven, true));
  add_rules(table, {"aten::histc"}, infer_histc);
  add_rules(table, {"aten::_cdist_forward"}, infer_cdist);
  add_rules(table, {"aten::_cdist_backward"}, infer_cdist_backward);
  add_rules(table, {"aten::_pdist_forward"}, infer_pdist);
  add_rules(table, {"aten::_pdist_backward"}, contiguous_as("self"));
  add_rules(table, {"aten::_foreach_norm.Scalar"}, infer_norms);
  add_rules(table, {"aten::linalg_cross"}, infer_cross);
}

}  // namespace cxxinductor::model
