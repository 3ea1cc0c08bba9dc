#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/accumulate.h"
#include "frontend/aten_table.h"
#include "ir/device_types.h"

namespace cxxinductor::frontend {

sym::Expr count_of(const Sizes& sizes, const std::vector<int>& dims) {
  if (dims.empty()) return graph::element_count(sizes);
  sym::Expr count = 1;
  for (int dim : dims) count = count * sizes[static_cast<size_t>(dim)];
  return count;
}

std::vector<int> all_dims(int rank) {
  std::vector<int> dims(static_cast<size_t>(rank));
  for (int d = 0; d < rank; ++d) dims[static_cast<size_t>(d)] = d;
  return dims;
}

Operand real_count(CallContext& context, sym::Expr count, DType compute) {
  if (count.is_constant()) return Operand(Scalar::from_integer(compute, count.constant()));
  const Device device = context.result().device;
  return Operand(context.build.cast(context.build.full(Operand(count), DType::I64, device, {}), compute));
}

ValueId divide_by_count(CallContext& context, ValueId x, sym::Expr count) {
  graph::Builder& build = context.build;
  const DType compute = context.dtype(x);
  const Operand divisor = real_count(context, count, compute);
  if (!context.eager().divides_by_inverse) return build.elementwise(ScalarOp::Div, {x, divisor});
  if (const auto* constant = std::get_if<Scalar>(&divisor)) {
    return build.elementwise(ScalarOp::Mul, {x, Operand(Scalar::from_real(compute, 1.0 / constant->real()))});
  }
  return build.elementwise(ScalarOp::Mul, {x, build.elementwise(ScalarOp::Reciprocal, {divisor})});
}

DType step_type(const CallContext& context, DType dtype) {
  return dtype == DType::F32 && context.eager().accumulates_f32_in_f64 ? DType::F64 : compute_type(dtype);
}

Moments moments(CallContext& context, ValueId x, const std::vector<int>& dims, bool keepdim) {
  const auto results = context.build.reduce(Reduction::Welford, x, dims, keepdim);
  return {results[0], results[1]};
}

ValueId reciprocal_deviation(CallContext& context, ValueId m2, sym::Expr count, double epsilon) {
  graph::Builder& build = context.build;
  const DType compute = context.dtype(m2);
  const ValueId variance = build.elementwise(ScalarOp::Div, {m2, real_count(context, count, compute)});
  const ValueId shifted = build.elementwise(ScalarOp::Add, {variance, Operand(immediate_real(compute, epsilon))});
  return build.elementwise(ScalarOp::Rsqrt, {shifted});
}

namespace {

// Dimensions to reduce: absent, None and [] mean all.
struct Axes {
  std::vector<int> dims;
  bool keepdim;
};

// As the arguments dim and keepdim at these positions say. A tensor without dimensions has none to reduce.
Axes axes_of(const CallContext& context, ValueId x, size_t dims_position, size_t keepdim_position) {
  Axes axes{context.dims(dims_position, "dim", context.rank(x)), context.boolean(keepdim_position, "keepdim", false)};
  std::sort(axes.dims.begin(), axes.dims.end());
  if (context.rank(x) == 0) axes.dims.clear();
  return axes;
}
Axes axes_of(const CallContext& context, ValueId x, bool has_dims) { return has_dims ? axes_of(context, x, 1, 2) : Axes{{}, false}; }

// Sum of x in the accumulate type of `dtype`.
ValueId accumulate(CallContext& context, Reduction reduction, ValueId x, DType dtype, const Axes& axes) {
  const ValueId wide = context.build.cast(context.build.cast(x, dtype), compute_type(dtype));
  return context.build.reduce(reduction, wide, axes.dims, axes.keepdim).front();
}

// Sums and products of integers and bools are i64 unless `dtype` says otherwise; the result's dtype is in the metadata.
Results import_sum(CallContext& context, Reduction reduction, bool has_dims) {
  const ValueId x = context.tensor(0, "self");
  const DType dtype = context.result().dtype;
  if (dtype == DType::Bool) return std::nullopt;
  const ValueId total = accumulate(context, reduction, x, dtype, axes_of(context, x, has_dims));
  return std::vector{context.build.cast(total, dtype)};
}

Results import_mean(CallContext& context, bool has_dims) {
  const ValueId x = context.tensor(0, "self");
  const DType dtype = context.result().dtype;
  if (!is_float(dtype)) return std::nullopt;
  const Axes axes = axes_of(context, x, has_dims);
  const sym::Expr count = count_of(context.value(x).sizes, axes.dims);
  const ValueId total = accumulate(context, Reduction::Sum, x, dtype, axes);
  return std::vector{context.build.cast(divide_by_count(context, total, count), dtype)};
}

// Eager raises there: no element is the largest.
bool is_of_no_elements(const CallContext& context, ValueId x, const std::vector<int>& dims) {
  const sym::Expr count = count_of(context.value(x).sizes, dims);
  return count.is_constant() && count.constant() == 0;
}

Results import_extremum(CallContext& context, Reduction reduction, bool has_dims) {
  const ValueId x = context.tensor(0, "self");
  const Axes axes = axes_of(context, x, has_dims);
  if (is_of_no_elements(context, x, axes.dims)) return context.decline("it reduces no elements");
  return std::vector{context.build.reduce(reduction, x, axes.dims, axes.keepdim).front()};
}

// max.dim and min.dim: values and the index of the first such value along one dimension.
Results import_extremum_with_index(CallContext& context, Reduction values, Reduction indices) {
  const ValueId x = context.tensor(0, "self");
  if (context.rank(x) == 0) return context.decline_rank_0();
  const std::vector<int> dims = context.dims(1, "dim", context.rank(x));
  if (is_of_no_elements(context, x, dims)) return context.decline("it reduces no elements");
  const bool keepdim = context.boolean(2, "keepdim", false);
  return std::vector{context.build.reduce(values, x, dims, keepdim).front(), context.build.reduce(indices, x, dims, keepdim).front()};
}

Results import_arg_extremum(CallContext& context, Reduction reduction) {
  const ValueId x = context.tensor(0, "self");
  if (context.rank(x) == 0) return context.decline_rank_0();
  if (context.dtype(x) == DType::Bool) return context.decline("ATen refuses bool");
  std::vector<int> dims = context.dims(1, "dim", context.rank(x));
  if (dims.empty()) dims = all_dims(context.rank(x));
  if (is_of_no_elements(context, x, dims)) return context.decline("it reduces no elements");
  return std::vector{context.build.reduce(reduction, x, dims, context.boolean(2, "keepdim", false)).front()};
}

// any and all: bool, except of u8, whose result eager keeps in u8.
Results import_truth(CallContext& context, Reduction reduction, bool has_dims) {
  const ValueId x = context.tensor(0, "self");
  const Axes axes = axes_of(context, x, has_dims);
  const ValueId found = context.build.reduce(reduction, x, axes.dims, axes.keepdim).front();
  return std::vector{context.build.cast(found, context.result().dtype)};
}

// Of no elements the mean is 0 / 0; Welford's is the 0 that it starts with.
ValueId nan_if_empty(CallContext& context, ValueId mean, sym::Expr count) {
  graph::Builder& build = context.build;
  if (sym::bounds(count, build.graph().assumptions).low > 0) return mean;
  const DType compute = context.dtype(mean);
  const Operand elements = real_count(context, count, compute);
  const auto* id = std::get_if<ValueId>(&elements);
  const Operand none = id ? Operand(build.elementwise(ScalarOp::Div, {Operand(immediate_real(compute, 0)), *id}))
                          : Operand(immediate_real(compute, std::numeric_limits<double>::quiet_NaN()));
  return build.elementwise(ScalarOp::Add, {mean, none});
}

// var, std and their pairs with the mean. m2 / max(count - correction, 0), in the type that steps are kept in.
Results import_variance(CallContext& context, bool deviation, bool with_mean) {
  const ValueId x = context.tensor(0, "self");
  const DType dtype = context.result().dtype;
  if (!is_float(dtype)) return std::nullopt;
  graph::Builder& build = context.build;
  const Axes axes = axes_of(context, x, 1, 3);
  if (const Arg* given = context.find(2, "correction"); given != nullptr && !to_scalar_arg(*given)) return std::nullopt;
  const double correction = context.real(2, "correction", 1.0);
  const sym::Expr count = count_of(context.value(x).sizes, axes.dims);
  const DType compute = step_type(context, dtype);
  const Moments found = moments(context, build.cast(x, compute), axes.dims, axes.keepdim);
  Operand divisor = real_count(context, count, compute);
  if (const auto* constant = std::get_if<Scalar>(&divisor)) {
    divisor = Scalar::from_real(compute, std::max(constant->real() - correction, 0.0));
  } else {
    const ValueId reduced = build.elementwise(ScalarOp::Sub, {divisor, Operand(immediate_real(compute, correction))});
    divisor = build.elementwise(ScalarOp::Maximum, {reduced, Operand(immediate_real(compute, 0))});
  }
  ValueId variance = build.elementwise(ScalarOp::Div, {found.m2, divisor});
  if (deviation) variance = build.elementwise(ScalarOp::Sqrt, {variance});
  std::vector<ValueId> results{build.cast(variance, dtype)};
  if (with_mean) results.push_back(build.cast(nan_if_empty(context, found.mean, count), dtype));
  return results;
}

// linalg_vector_norm of order 0, 1, 2 and of both infinities, over dims.
Results import_vector_norm(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  const DType dtype = context.result().dtype;
  const double order = context.real(1, "ord", 2.0);
  if (!is_float(dtype)) return context.decline("it is not of floats");
  if (!std::isinf(order) && order != 0 && order != 1 && order != 2) return context.decline("the importer covers norms of order 0, 1, 2 and infinity");
  graph::Builder& build = context.build;
  const Axes axes = axes_of(context, x, 2, 3);
  const ValueId wide = build.cast(build.cast(x, dtype), compute_type(dtype));
  const auto reduced = [&](Reduction reduction, ValueId terms) { return build.reduce(reduction, terms, axes.dims, axes.keepdim).front(); };
  if (order == 0) {
    const ValueId counts = build.elementwise(ScalarOp::Ne, {wide, Operand(immediate_real(dtype, 0))});
    return std::vector{build.cast(reduced(Reduction::Sum, build.cast(counts, compute_type(dtype))), dtype)};
  }
  if (order == 2) {
    const ValueId total = reduced(Reduction::Sum, build.elementwise(ScalarOp::Mul, {wide, wide}));
    return std::vector{build.cast(build.elementwise(ScalarOp::Sqrt, {total}), dtype)};
  }
  const Reduction reduction = order == 1 ? Reduction::Sum : order > 0 ? Reduction::Max : Reduction::Min;
  return std::vector{build.cast(reduced(reduction, build.elementwise(ScalarOp::Abs, {wide})), dtype)};
}

}  // namespace

void add_reduction_rows(ImportTable& table) {
  const auto add = [&table](const char* name, Importer importer, Accepts accepts = Accepts::Arithmetic) {
    table.emplace(name, ImportRow{std::move(importer), accepts});
  };
  add("aten::sum", [](CallContext& c) { return import_sum(c, Reduction::Sum, false); });
  add("aten::sum.dim_IntList", [](CallContext& c) { return import_sum(c, Reduction::Sum, true); });
  add("aten::prod", [](CallContext& c) { return import_sum(c, Reduction::Prod, false); });
  add("aten::prod.dim_int", [](CallContext& c) { return import_sum(c, Reduction::Prod, true); });
  add("aten::mean", [](CallContext& c) { return import_mean(c, false); });
  add("aten::mean.dim", [](CallContext& c) { return import_mean(c, true); });
  add("aten::max", [](CallContext& c) { return import_extremum(c, Reduction::Max, false); });
  add("aten::min", [](CallContext& c) { return import_extremum(c, Reduction::Min, false); });
  add("aten::amax", [](CallContext& c) { return import_extremum(c, Reduction::Max, true); });
  add("aten::amin", [](CallContext& c) { return import_extremum(c, Reduction::Min, true); });
  add("aten::max.dim", [](CallContext& c) { return import_extremum_with_index(c, Reduction::Max, Reduction::ArgMax); });
  add("aten::min.dim", [](CallContext& c) { return import_extremum_with_index(c, Reduction::Min, Reduction::ArgMin); });
  add("aten::argmax", [](CallContext& c) { return import_arg_extremum(c, Reduction::ArgMax); });
  add("aten::argmin", [](CallContext& c) { return import_arg_extremum(c, Reduction::ArgMin); });
  add("aten::any", [](CallContext& c) { return import_truth(c, Reduction::Any, false); });
  add("aten::all", [](CallContext& c) { return import_truth(c, Reduction::All, false); });
  for (const char* suffix : {".dim", ".dims"}) {
    table.emplace(std::string("aten::any") + suffix, ImportRow{[](CallContext& c) { return import_truth(c, Reduction::Any, true); }});
    table.emplace(std::string("aten::all") + suffix, ImportRow{[](CallContext& c) { return import_truth(c, Reduction::All, true); }});
  }
  add("aten::var.correction", [](CallContext& c) { return import_variance(c, false, false); });
  add("aten::std.correction", [](CallContext& c) { return import_variance(c, true, false); });
  add("aten::var_mean.correction", [](CallContext& c) { return import_variance(c, false, true); });
  add("aten::std_mean.correction", [](CallContext& c) { return import_variance(c, true, true); });
  add("aten::linalg_vector_norm", import_vector_norm);
}

}  // namespace cxxinductor::frontend
