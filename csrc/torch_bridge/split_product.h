// A matrix product as several, where the rows of the result do not start at boundaries of 16 bytes, which costs cuBLAS a factor (see
// ir/matmul_rows.h): rows that start at the same distance from one are those of an aligned product, but for a few columns at both ends.
// Takes no memory, where padding takes that of another result.
#pragma once

#include <ATen/core/Tensor.h>

namespace cxxinductor::torch_bridge {

// [m, n] = [m, k] x [k, n] of 16-bit floats on CUDA with aligned factors that lie along k, large enough for the calls to pay.
bool splits_product(const at::Tensor& result, const at::Tensor& left, const at::Tensor& right);
// For which splits_product holds, on any device.
void split_product(const at::Tensor& result, const at::Tensor& left, const at::Tensor& right);

}  // namespace cxxinductor::torch_bridge
