// Straight-line TorchScript on tensors without memory, with symbolic sizes: PyTorch's own interpreter knows integers
// alone.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/ir/ir.h>

#include <vector>

namespace cxxinductor::torch_bridge {

// The results of a graph without control flow whose result is a tuple: its items. arguments: by input; integers may be
// c10::SymInt.
std::vector<c10::IValue> interpret(const torch::jit::Graph& graph, std::vector<c10::IValue> arguments);

}  // namespace cxxinductor::torch_bridge
