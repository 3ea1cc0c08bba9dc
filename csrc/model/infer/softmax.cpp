// Softmaxes and their gradients; results are contiguous.
#include "model/infer/table.h"

namespace cxxinductor::model {
namespace {

InferredResults infer_softmax(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  c.dim("dim", self.sizes.size());
  CallValueInfo result = contiguous_like(self, self.sizes);
  if (c.boolean("half_to_float")) result.dtype = DType::F32;
  result.dtype = c.dtype("dtype").value_or(result.dtype);
  return std::vector{std::move(result)};
}

InferredResults infer_backward(InferContext& c) {
  const CallValueInfo& grad = c.tensor("grad_output");
  return std::vector{contiguous(c.dtype("input_dtype").value_or(grad.dtype), grad.device, grad.sizes)};
}

}  // namespace

void add_softmax_rules(RuleTable& table) {
  add_rules(table, {"aten::_softmax", "aten::_log_softmax", "aten::_safe_softmax"}, infer_softmax);
  add_rules(table, {"aten::_softmax_backward_data", "aten::_log_softmax_backward_data"}, infer_backward);
}

}  // namespace cxxinductor::model
