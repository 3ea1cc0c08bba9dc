#include "torch_bridge/record/make_call.h"

#include "torch_bridge/record/fake_tensor.h"

namespace cxxinductor::torch_bridge {
namespace {

bool is_default(const c10::IValue& value, const c10::Argument& formal) {
  if (!formal.default_value() || value.isTensor() || value.isTensorList()) return false;
  const c10::IValue& usual = *formal.default_value();
  if (usual.isNone() || value.isNone()) return usual.isNone() && value.isNone();
  const bool comparable = (value.isInt() && usual.isInt()) || (value.isBool() && usual.isBool()) || (value.isDouble() && usual.isDouble()) ||
                          (value.isString() && usual.isString()) || (value.isIntList() && usual.isIntList());
  return comparable && value == usual;
}

}  // namespace

std::optional<Arg> as_number(const at::Tensor& tensor) {
  if (tensor.key_set().has(recording_key) || !tensor.unsafeGetTensorImpl()->is_wrapped_number()) return std::nullopt;
  const c10::impl::ExcludeDispatchKeyGuard no_recording(recording_key);
  const at::Scalar number = tensor.item();
  if (number.isBoolean()) return Arg(number.toBool());
  if (number.isIntegral(false)) return Arg(number.toLong());
  if (number.isComplex()) {
    const auto z = number.toComplexDouble();
    return Arg(std::complex<double>(z.real(), z.imag()));
  }
  return Arg(number.toDouble());
}

bool returns_list(const c10::OperatorHandle& op) {
  const std::vector<c10::Argument>& returns = op.schema().returns();
  return returns.size() == 1 && returns.front().type()->kind() == c10::TypeKind::ListType;
}

model::Call make_call(const c10::OperatorHandle& op, const torch::jit::Stack& stack, const TensorToArg& tensor_to_arg) {
  const c10::FunctionSchema& schema = op.schema();
  const TensorToArg number_or_tensor = [&](const at::Tensor& tensor) -> Arg {
    if (const auto number = as_number(tensor)) return *number;
    return tensor_to_arg(tensor);
  };
  model::Call call;
  call.callee = schema.name();
  call.overload = schema.overload_name();
  const size_t count = schema.arguments().size();
  const auto values = torch::jit::last(stack, count);
  size_t positional = count;
  while (positional > 0 && schema.arguments()[positional - 1].kwarg_only()) --positional;
  size_t given = positional;
  while (given > 0 && is_default(values[given - 1], schema.arguments()[given - 1])) --given;
  for (size_t i = 0; i < count; ++i) {
    const c10::Argument& formal = schema.arguments()[i];
    if (i < given) {
      call.args.push_back(to_arg(values[i], formal.real_type(), number_or_tensor));
    } else if (i >= positional && !is_default(values[i], formal)) {
      call.kwargs.emplace_back(formal.name(), to_arg(values[i], formal.real_type(), number_or_tensor));
    }
  }
  return call;
}

}  // namespace cxxinductor::torch_bridge
