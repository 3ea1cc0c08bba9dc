// Composites of ours in place of ATen's, for ops whose own composite cannot run on tensors without memory: it reads
// elements, or sizes as numbers. Each makes the calls that eager's kernel makes for the same arguments, or calls of the
// same values.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string_view>

namespace cxxinductor::torch_bridge {

// Takes the arguments off the stack and leaves the results, as the op does. False: ATen's own composite is right for
// these arguments; some of these may have been replaced by others of the same values.
using Composite = bool (*)(torch::jit::Stack& stack);
// By full name, "aten::one_hot". Null: there is none.
Composite find_composite(std::string_view op);

}  // namespace cxxinductor::torch_bridge
