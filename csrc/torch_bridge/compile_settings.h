// PyTorch's settings that compiled code depends on.
#pragma once

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>

namespace cxxinductor::torch_bridge {

struct CompileSettings {
  bool deterministic = false;                              // torch.use_deterministic_algorithms
  c10::ScalarType default_dtype = c10::ScalarType::Float;  // what is compiled knows this one

  static CompileSettings current() { return {at::globalContext().deterministicAlgorithms(), c10::get_default_dtype_as_scalartype()}; }
  bool operator==(const CompileSettings&) const = default;
};

}  // namespace cxxinductor::torch_bridge
