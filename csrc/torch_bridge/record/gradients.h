// Gradients on the calling thread alone: the engine of PyTorch runs the nodes of GPU tensors on threads of its own,
// where nothing is recorded.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace cxxinductor::torch_bridge {

// What torch::autograd::grad returns of them, undefined where an input has no part in the outputs. The graph of an input
// that is no leaf is not followed. Unsupported where hooks would see gradients.
std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& output_gradients,
                                  const std::vector<at::Tensor>& inputs);

}  // namespace cxxinductor::torch_bridge
