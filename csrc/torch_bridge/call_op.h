// Calls an op by the dispatcher.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace cxxinductor::torch_bridge {

// An assertion of the model's own that does not hold is a FailedAssertion; other errors are PyTorch's. On CUDA _assert_async ends the
// process's work on the device, as in eager.
void call_op(const c10::OperatorHandle& op, torch::jit::Stack& stack);

}  // namespace cxxinductor::torch_bridge
