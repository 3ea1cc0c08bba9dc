// A runtime::TensorView as an at::Tensor, for the time of one call.
#pragma once

#include <ATen/core/Tensor.h>

#include "runtime/host.h"

namespace cxxinductor::torch_bridge {

at::Tensor view_tensor(const runtime::TensorView& view);

}  // namespace cxxinductor::torch_bridge
