// Convolutions that write memory of the plan's.
#pragma once

#include <ATen/core/stack.h>

namespace cxxinductor::torch_bridge {

// An InPlaceForm of aten::convolution. cuDNN's convolutions, and ATen's depthwise ones of two dimensions, write in
// place if the destination has the strides of the tensor that eager allocates for them. Which backend a call has
// depends on its sizes, the strides of its operands and the settings of the time (ATen/native/Convolution.cpp); what is
// done for the backend is what `_convolution` does there.
bool convolve_in_place(const torch::jit::Stack& arguments);

}  // namespace cxxinductor::torch_bridge
