// Softmax, log_softmax, their backwards and logsumexp: computed in the accumulate type and rounded once, as in eager's kernels.
#include "frontend/accumulate.h"
#include "frontend/aten_table.h"

namespace cxxinductor::frontend {
namespace {

// _softmax(self, dim, half_to_float). With half_to_float the result is f32: the dtype is in the metadata.
Results import_softmax(CallContext& context, bool logarithm) {
  graph::Builder& build = context.build;
  const ValueId x = context.tensor(0, "self");
  const DType dtype = context.result().dtype;
  if (context.rank(x) == 0) return context.decline_rank_0();
  if (!is_float(dtype)) return context.decline("it is not of floats");
  const std::vector<int> dims = context.dims(1, "dim", context.rank(x));
  const ValueId wide = build.cast(x, compute_type(dtype));
  const ValueId largest = build.reduce(Reduction::Max, wide, dims, true).front();
  const ValueId shifted = build.elementwise(ScalarOp::Sub, {wide, largest});
  const ValueId exponential = build.elementwise(ScalarOp::Exp, {shifted});
  const ValueId total = build.reduce(Reduction::Sum, exponential, dims, true).front();
  const ValueId result = logarithm ? build.elementwise(ScalarOp::Sub, {shifted, build.elementwise(ScalarOp::Log, {total})})
                                   : build.elementwise(ScalarOp::Div, {exponential, total});
  return std::vector{build.cast(result, dtype)};
}

// _softmax_backward_data(grad_output, output, dim, input_dtype): eager forms grad * output as a tensor of its own.
Results import_softmax_backward(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId gradient = context.tensor(0, "grad_output"), output = context.tensor(1, "output");
  const DType dtype = context.dtype(gradient);
  if (context.rank(output) == 0) return context.decline_rank_0();
  if (context.dtype(output) != dtype) return context.decline("its arguments have different dtypes");
  const std::vector<int> dims = context.dims(2, "dim", context.rank(output));
  const DType compute = compute_type(dtype);
  const ValueId product = build.cast(build.elementwise(ScalarOp::Mul, {gradient, output}), compute);
  const ValueId total = build.reduce(Reduction::Sum, product, dims, true).front();
  const ValueId scaled = build.elementwise(ScalarOp::Mul, {build.cast(output, compute), total});
  const ValueId result = build.elementwise(ScalarOp::Sub, {product, scaled});
  return std::vector{build.cast(result, context.result().dtype)};
}

Results import_log_softmax_backward(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId gradient = context.tensor(0, "grad_output"), output = context.tensor(1, "output");
  const DType dtype = context.dtype(gradient);
  if (context.rank(output) == 0) return context.decline_rank_0();
  if (context.dtype(output) != dtype) return context.decline("its arguments have different dtypes");
  const std::vector<int> dims = context.dims(2, "dim", context.rank(output));
  const DType compute = compute_type(dtype);
  const ValueId wide = build.cast(gradient, compute);
  const ValueId total = build.reduce(Reduction::Sum, wide, dims, true).front();
  const ValueId probability = build.elementwise(ScalarOp::Exp, {build.cast(output, compute)});
  const ValueId scaled = build.elementwise(ScalarOp::Mul, {probability, total});
  const ValueId result = build.elementwise(ScalarOp::Sub, {wide, scaled});
  return std::vector{build.cast(result, context.result().dtype)};
}

// logsumexp(self, dim, keepdim): each step is an op of its own in eager, and rounds; infinite maxima count as zero.
Results import_logsumexp(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId x = context.tensor(0, "self");
  const DType dtype = context.dtype(x);
  if (context.rank(x) == 0) return context.decline_rank_0();
  if (!is_float(dtype) || context.result().dtype != dtype) return context.decline("it is of integers");
  std::vector<int> dims = context.dims(1, "dim", context.rank(x));
  if (dims.empty()) return context.decline("it is over all dimensions");
  const DType compute = compute_type(dtype);
  const ValueId largest = build.reduce(Reduction::Max, x, dims, true).front();
  const ValueId magnitude = build.elementwise(ScalarOp::Abs, {largest});
  const Operand infinity(Scalar::from_real(compute, std::numeric_limits<double>::infinity()));
  const ValueId is_infinite = build.elementwise(ScalarOp::Eq, {magnitude, infinity});
  const ValueId offset = build.elementwise(ScalarOp::Where, {is_infinite, Operand(immediate_real(dtype, 0)), largest});
  const ValueId exponential = build.elementwise(ScalarOp::Exp, {build.elementwise(ScalarOp::Sub, {x, offset})});
  const ValueId total = build.reduce(Reduction::Sum, build.cast(exponential, compute), dims, true).front();
  const ValueId logarithm = build.elementwise(ScalarOp::Log, {build.cast(total, dtype)});
  const ValueId result = build.elementwise(ScalarOp::Add, {logarithm, offset});
  return std::vector{context.boolean(2, "keepdim", false) ? result : build.reshape(result, context.result().sizes)};
}

}  // namespace

void add_softmax_rows(ImportTable& table) {
  table.emplace("aten::_softmax", ImportRow{[](CallContext& c) { return import_softmax(c, false); }});
  table.emplace("aten::_log_softmax", ImportRow{[](CallContext& c) { return import_softmax(c, true); }});
  table.emplace("aten::_softmax_backward_data", ImportRow{import_softmax_backward});
  table.emplace("aten::_log_softmax_backward_data", ImportRow{import_log_softmax_backward});
  table.emplace("aten::logsumexp", ImportRow{import_logsumexp});
}

}  // namespace cxxinductor::frontend
