// A dispatcher call as one of a call graph.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>

#include "model/call_graph.h"
#include "torch_bridge/record/to_arg.h"

namespace cxxinductor::torch_bridge {

// Of the arguments on top of the stack, without those at the end that are defaults. It has no results yet.
model::Call make_call(const c10::OperatorHandle& op, const torch::jit::Stack& stack, const TensorToArg& tensor_to_arg);

// A number that ATen made a tensor of, so that it takes part in type promotion as a number does. None for other
// tensors.
std::optional<Arg> as_number(const at::Tensor& tensor);

bool returns_list(const c10::OperatorHandle& op);

}  // namespace cxxinductor::torch_bridge
