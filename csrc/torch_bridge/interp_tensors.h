// Tensors of torch <-> the interpreter's.
#pragma once

#include <ATen/core/ivalue.h>

#include "interp/interp.h"

namespace cxxinductor::torch_bridge {

// Of a tensor of any device and strides, of an integer (i64 of rank 0), or of none (0). Unsupported for other values and dtypes.
interp::Tensor to_interp(const c10::IValue& value);
at::Tensor from_interp(const interp::Tensor& tensor);  // dense, on the CPU
// Answers library calls by ATen on the CPU; random draws begin with the seed. Its errors are Unsupported.
interp::ExternHandler aten_externs(uint64_t seed);

}  // namespace cxxinductor::torch_bridge
