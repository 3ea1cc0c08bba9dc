// Our plain data <-> torch's types. Only this layer includes torch.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <vector>

#include "ir/call_args.h"
#include "ir/dtype.h"

namespace cxxinductor::torch_bridge {

c10::ScalarType to_torch(DType dtype);
DType from_torch(c10::ScalarType type);  // Unsupported for quantised and other exotic types
c10::Device to_torch(Device device);
Device from_torch(c10::Device device);                 // Unsupported for a type without a row in ir/device_types.h
c10::DispatchKeySet dense_keys(c10::DeviceType type);  // of dense tensors on such devices

// How the operand references and symbols of an argument tree are filled.
struct ArgResolver {
  std::function<c10::IValue(uint32_t operand)> operand;
  std::function<c10::SymInt(sym::Expr)> symbol;
};
// The IValue that `type` (of the callee's schema) wants for `arg`; UserError when it does not fit.
c10::IValue to_ivalue(const Arg& arg, const c10::TypePtr& type, const ArgResolver& resolver);
// The full stack for a call: positional, then keyword arguments, then the schema's defaults.
std::vector<c10::IValue> build_stack(const c10::FunctionSchema& schema, const std::vector<Arg>& args, const std::vector<std::pair<std::string, Arg>>& kwargs,
                                     const ArgResolver& resolver);

}  // namespace cxxinductor::torch_bridge
