// Functions of this process that a graph calls as steps: higher-order operators, user Triton kernels.
//
// cxxinductor::call_function(int function, Tensor?[] tensors, int[] integers) -> Tensor[] calls one by its number (a Handle
// among the arguments). Being an op of the dispatcher, it runs alike in compiled graphs, in the ATen executor and under
// check=eager. Such calls keep their order, and their graphs are not stored.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace cxxinductor::torch_bridge {

// Takes tensors (undefined ones for None) and integers; the results share no memory with the tensors. Called from any
// thread, without the GIL.
using Function = std::function<std::vector<at::Tensor>(std::vector<at::Tensor> tensors, std::vector<int64_t> integers)>;

// Numbers are process-wide, since dispatcher ops have no other way to say which function is meant. One is valid while the
// pointer that came with it lives, and never used again.
struct RegisteredFunction {
  uint32_t number;
  std::shared_ptr<const void> owner;
};
RegisteredFunction register_function(Function function);

}  // namespace cxxinductor::torch_bridge
