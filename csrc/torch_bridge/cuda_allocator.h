// Torch's CUDA allocator. Its functions are virtual: libtorch_cuda, which may not be there, need not be linked.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/cuda/CUDACachingAllocator.h>

namespace cxxinductor::torch_bridge {

inline c10::cuda::CUDACachingAllocator::CUDAAllocator* cuda_allocator() {
  return static_cast<c10::cuda::CUDACachingAllocator::CUDAAllocator*>(c10::GetAllocator(c10::kCUDA));
}

}  // namespace cxxinductor::torch_bridge
