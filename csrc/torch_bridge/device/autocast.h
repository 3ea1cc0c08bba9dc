#pragma once

#include <torch/library.h>

namespace cxxinductor::torch_bridge {

// Autocast on the recorded device casts what it casts on GPUs. library: of aten, for AutocastPrivateUse1.
void add_autocast(torch::Library& library);

}  // namespace cxxinductor::torch_bridge
