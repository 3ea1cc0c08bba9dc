// Ops that the library gives to PyTorch's dispatcher, in the namespace cxxinductor.
#pragma once

#include <torch/library.h>

#include <optional>

namespace cxxinductor::torch_bridge {

// A static of each file that defines ops: they are there while the library is loaded. A second copy of the library in the process registers
// none, since the dispatcher would end the process; check_process() refuses the copy when it is used.
class RegisteredOps {
 public:
  explicit RegisteredOps(void (*define)(torch::Library&));

 private:
  std::optional<torch::Library> library_;
};

}  // namespace cxxinductor::torch_bridge
