// Plan kernel -> CUDA C++ for NVRTC: header-free text, the prelude of kernels_templates/cuda included by value.
#pragma once

#include <string>
#include <vector>

#include "ir/origin.h"
#include "ir/plan/plan.h"
#include "ir/target.h"

namespace cxxinductor::codegen {

// A translation unit with one extern "C" __global__ function a kernel, named kernel.name.
// Signature: (T0* p0, T1* p1, ..., long long s0, ...) in the order of params, then symbols; then int* error_flag when the
// kernel holds Check statements.
std::string emit_cuda(const std::vector<const plan::Kernel*>& kernels, plan::Variant variant, const Target& target,
                      const OriginTable& origins);
struct CudaLaunchShape {
  int block_x = 1, block_y = 1;
  int64_t dynamic_shared_bytes = 0;
};
CudaLaunchShape cuda_launch_shape(const plan::Kernel& kernel, plan::Variant variant);

}  // namespace cxxinductor::codegen
