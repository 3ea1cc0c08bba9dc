// Normalisations: statistics and scaling in the accumulate type, results rounded once.
#include "frontend/accumulate.h"
#include "frontend/aten_table.h"
#include "ir/device_types.h"

namespace cxxinductor::frontend {
namespace {

std::vector<int> trailing_dims(int rank, size_t count) {
  std::vector<int> dims;
  for (int d = rank - static_cast<int>(count); d < rank; ++d) dims.push_back(d);
  return dims;
}

// weight and bias are optional and of any float dtype; both broadcast against x from the right.
ValueId scale_and_shift(CallContext& context, ValueId x, std::optional<ValueId> weight, std::optional<ValueId> bias) {
  graph::Builder& build = context.build;
  const DType compute = context.dtype(x);
  if (weight) x = build.elementwise(ScalarOp::Mul, {x, build.cast(*weight, compute)});
  if (bias) x = build.elementwise(ScalarOp::Add, {x, build.cast(*bias, compute)});
  return x;
}

// native_layer_norm(input, normalized_shape, weight?, bias?, eps) -> (output, mean, rstd)
Results import_layer_norm(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId x = context.tensor(0, "input");
  const std::vector<int> dims = trailing_dims(context.rank(x), context.exprs(1, "normalized_shape").size());
  if (dims.empty() || !is_float(context.dtype(x))) return std::nullopt;
  const sym::Expr count = count_of(context.value(x).sizes, dims);
  const ValueId wide = build.cast(x, compute_type(context.dtype(x)));
  const Moments found = moments(context, wide, dims, true);
  const ValueId rstd = reciprocal_deviation(context, found.m2, count, context.real(4, "eps", 1e-5));
  const ValueId centred = build.elementwise(ScalarOp::Sub, {wide, found.mean});
  const ValueId normal = build.elementwise(ScalarOp::Mul, {centred, rstd});
  const ValueId result = scale_and_shift(context, normal, context.optional_tensor(2, "weight"), context.optional_tensor(3, "bias"));
  return std::vector{build.cast(result, context.result(0).dtype), build.cast(found.mean, context.result(1).dtype), build.cast(rstd, context.result(2).dtype)};
}

// _fused_rms_norm(input, normalized_shape, weight?, eps?) -> (output, rstd); eps defaults to the compute type's epsilon.
Results import_rms_norm(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId x = context.tensor(0, "input");
  const std::vector<int> dims = trailing_dims(context.rank(x), context.exprs(1, "normalized_shape").size());
  const DType dtype = context.dtype(x), compute = compute_type(dtype);
  if (dims.empty() || !is_float(dtype)) return std::nullopt;
  // The default is the compute type's epsilon (as in torch's decomposition of this op).
  const double default_eps = compute == DType::F64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  const double eps = context.has(3, "eps") ? context.real(3, "eps", default_eps) : default_eps;
  const sym::Expr count = count_of(context.value(x).sizes, dims);
  const ValueId wide = build.cast(x, compute);
  const ValueId squares = build.elementwise(ScalarOp::Mul, {wide, wide});
  const ValueId total = build.reduce(Reduction::Sum, squares, dims, true).front();
  const ValueId rstd = reciprocal_deviation(context, total, count, eps);
  ValueId result = build.elementwise(ScalarOp::Mul, {wide, rstd});
  result = scale_and_shift(context, result, context.optional_tensor(2, "weight"), std::nullopt);
  return std::vector{build.cast(result, context.result(0).dtype), build.cast(rstd, context.result(1).dtype)};
}

// A per-channel vector against [N, C, ...]: sizes [C, 1, ...].
ValueId per_channel(CallContext& context, ValueId vector, int rank, DType compute) {
  Sizes sizes{context.value(vector).sizes.front()};
  for (int d = 2; d < rank; ++d) sizes.push_back(1);
  return context.build.cast(context.build.reshape(vector, sizes), compute);
}

// native_group_norm(input, weight?, bias?, N, C, HxW, group, eps) -> (output, mean, rstd)
Results import_group_norm(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId x = context.tensor(0, "input");
  const DType dtype = context.dtype(x), compute = compute_type(dtype);
  const int rank = context.rank(x);
  const sym::Expr n = context.expr(3, "N", 1), c = context.expr(4, "C", 1), hw = context.expr(5, "HxW", 1);
  const sym::Expr groups = context.expr(6, "group", 1);
  if (!is_float(dtype) || rank < 2) return std::nullopt;
  const sym::Expr per_group = sym::floor_div(c, groups);
  const ValueId grouped = build.cast(build.reshape(x, {n, groups, per_group * hw}), compute);
  const Moments found = moments(context, grouped, {2}, true);
  const ValueId rstd = reciprocal_deviation(context, found.m2, per_group * hw, context.real(7, "eps", 1e-5));
  const ValueId mean_result = build.cast(found.mean, context.result(1).dtype);
  const ValueId rstd_result = build.cast(rstd, context.result(2).dtype);
  const bool reads_results = context.eager().group_norm_rereads;
  const ValueId mean = reads_results ? build.cast(mean_result, compute) : found.mean;
  const ValueId deviation = reads_results ? build.cast(rstd_result, compute) : rstd;
  const ValueId centred = build.elementwise(ScalarOp::Sub, {grouped, mean});
  const ValueId normal = build.elementwise(ScalarOp::Mul, {centred, deviation});
  const auto weight = context.optional_tensor(1, "weight"), bias = context.optional_tensor(2, "bias");
  const ValueId shaped = build.reshape(normal, context.value(x).sizes);
  const ValueId result = scale_and_shift(context, shaped, weight ? std::optional(per_channel(context, *weight, rank, compute)) : std::nullopt,
                                         bias ? std::optional(per_channel(context, *bias, rank, compute)) : std::nullopt);
  return std::vector{build.cast(result, context.result(0).dtype), build.reshape(mean_result, context.result(1).sizes),
                     build.reshape(rstd_result, context.result(2).sizes)};
}

struct BatchNormArguments {
  ValueId x, mean, variance;
  std::optional<ValueId> weight, bias;
  double epsilon;
};

// (x - mean) * rsqrt(variance + eps) * weight + bias with the running statistics, in the accumulate type.
ValueId batch_norm(CallContext& context, const BatchNormArguments& a) {
  graph::Builder& build = context.build;
  const int rank = context.rank(a.x);
  const DType compute = compute_type(context.dtype(a.x));
  const ValueId mean = per_channel(context, a.mean, rank, compute);
  const ValueId variance = per_channel(context, a.variance, rank, compute);
  const ValueId shifted = build.elementwise(ScalarOp::Add, {variance, Operand(immediate_real(compute, a.epsilon))});
  const ValueId deviation = build.elementwise(ScalarOp::Rsqrt, {shifted});
  const ValueId centred = build.elementwise(ScalarOp::Sub, {build.cast(a.x, compute), mean});
  const ValueId normal = build.elementwise(ScalarOp::Mul, {centred, deviation});
  const ValueId result = scale_and_shift(context, normal, a.weight ? std::optional(per_channel(context, *a.weight, rank, compute)) : std::nullopt,
                                         a.bias ? std::optional(per_channel(context, *a.bias, rank, compute)) : std::nullopt);
  return build.cast(result, context.result(0).dtype);
}

// Results after the first are statistics: empty on the CPU; on CUDA the running mean and the reciprocal deviation.
Results with_statistics(CallContext& context, ValueId output, const BatchNormArguments& a) {
  graph::Builder& build = context.build;
  std::vector<ValueId> results{output};
  for (size_t i = 1; i < context.result_count(); ++i) {
    const CallValueInfo& info = context.result(i);
    const DType compute = compute_type(info.dtype);
    if (graph::element_count(info.sizes).is_constant(0)) {
      results.push_back(build.full(Scalar::from_integer(compute, 0), info.dtype, info.device, info.sizes));
    } else if (i == 1) {
      // A copy: eager's shares no memory with its argument.
      const bool same = context.dtype(a.mean) == info.dtype;
      results.push_back(same ? build.elementwise(ScalarOp::Identity, {a.mean}) : build.cast(a.mean, info.dtype));
    } else {
      const ValueId shifted = build.elementwise(ScalarOp::Add, {build.cast(a.variance, compute), Operand(immediate_real(compute, a.epsilon))});
      results.push_back(build.cast(build.elementwise(ScalarOp::Rsqrt, {shifted}), info.dtype));
    }
  }
  return results;
}

bool statistics_are_known(const CallContext& context, ValueId mean) {
  for (size_t i = 1; i < context.result_count(); ++i) {
    const CallValueInfo& info = context.result(i);
    if (info.kind != CallValueInfo::Kind::Tensor) return false;
    const bool empty = graph::element_count(info.sizes).is_constant(0);
    if (!empty && (i > 2 || !is_float(info.dtype) || info.sizes != context.value(mean).sizes)) return false;
  }
  return true;
}

// _native_batch_norm_legit_no_training(input, weight?, bias?, running_mean, running_var, momentum, eps)
Results import_batch_norm(CallContext& context) {
  const ValueId x = context.tensor(0, "input");
  const BatchNormArguments arguments{x,
                                     context.tensor(3, "running_mean"),
                                     context.tensor(4, "running_var"),
                                     context.optional_tensor(1, "weight"),
                                     context.optional_tensor(2, "bias"),
                                     context.real(6, "eps", 1e-5)};
  if (context.rank(x) < 2 || !is_float(context.dtype(x)) || !statistics_are_known(context, arguments.mean)) return std::nullopt;
  return with_statistics(context, batch_norm(context, arguments), arguments);
}

// native_batch_norm and cudnn_batch_norm with training=False at position 5, eps at 7.
Results import_batch_norm_with_flag(CallContext& context) {
  const ValueId x = context.tensor(0, "input");
  if (context.boolean(5, "training", true)) return context.decline("its training form was not decomposed");
  if (context.rank(x) < 2) return std::nullopt;
  const auto mean = context.optional_tensor(3, "running_mean"), variance = context.optional_tensor(4, "running_var");
  if (!mean || !variance || !is_float(context.dtype(x)) || !statistics_are_known(context, *mean)) return std::nullopt;
  const BatchNormArguments arguments{
      x, *mean, *variance, context.optional_tensor(1, "weight"), context.optional_tensor(2, "bias"), context.real(7, "eps", 1e-5)};
  return with_statistics(context, batch_norm(context, arguments), arguments);
}

}  // namespace

void add_norm_rows(ImportTable& table) {
  table.emplace("aten::native_layer_norm", ImportRow{import_layer_norm});
  table.emplace("aten::_fused_rms_norm", ImportRow{import_rms_norm});
  table.emplace("aten::native_group_norm", ImportRow{import_group_norm});
  table.emplace("aten::_native_batch_norm_legit_no_training", ImportRow{import_batch_norm});
  table.emplace("aten::_batch_norm_no_update", ImportRow{import_batch_norm});
  table.emplace("aten::native_batch_norm", ImportRow{import_batch_norm_with_flag});
  table.emplace("aten::_native_batch_norm_legit", ImportRow{import_batch_norm_with_flag});
  table.emplace("aten::cudnn_batch_norm", ImportRow{import_batch_norm_with_flag});
}

}  // namespace cxxinductor::frontend
