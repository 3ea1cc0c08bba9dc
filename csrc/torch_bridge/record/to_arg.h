// Arguments of dispatcher calls as our plain data; the other direction is types.h.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <functional>

#include "ir/call_args.h"

namespace cxxinductor::torch_bridge {

// What stands for a tensor among the arguments: an operand reference, or a number.
using TensorToArg = std::function<Arg(const at::Tensor&)>;

// type: the schema's (Argument::real_type). Unsupported for what call graphs cannot hold, as generators.
Arg to_arg(const c10::IValue& value, const c10::TypePtr& type, const TensorToArg& tensor_to_arg);

}  // namespace cxxinductor::torch_bridge
