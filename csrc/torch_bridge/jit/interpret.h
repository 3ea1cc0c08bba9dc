// Runs TorchScript code on tensors without memory, so that a recorder sees its calls.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/ir/ir.h>

#include <vector>

namespace cxxinductor::torch_bridge {

// The code of a region (regions.h); returns the items of the tuple that it gives. Loops are unrolled and branches taken as the arguments
// say; what a symbolic size decides there becomes a guard. Numbers among the arguments may be symbolic, and so may those among the results.
// Where it throws, `at` is the node that did.
std::vector<c10::IValue> interpret(const torch::jit::Graph& code, std::vector<c10::IValue> arguments, const torch::jit::Node*& at);

}  // namespace cxxinductor::torch_bridge
