// scaled_dot_product_attention on the recorded device: by the kernel that PyTorch chooses on the backing device.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace cxxinductor::torch_bridge {

// PyTorch's composite asks the device which kernel to take; from now on this device answers as its backing does.
void register_attention_choice();

// Flash attention of GPUs, which PyTorch's composite takes for tensors of named devices alone. False: another kernel is
// to be taken; the stack is as it was.
bool flash_attention(torch::jit::Stack& stack);

}  // namespace cxxinductor::torch_bridge
