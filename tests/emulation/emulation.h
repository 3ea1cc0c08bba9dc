// What a unit of CUDA text includes first to run on the host: the words of CUDA itself, and launches. The intrinsics are those of this folder,
// because the compiler looks here before it looks into kernels_templates. Not for speed, and without blocks that wait for one another: they run
// one after the other.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "block.h"

#define __global__
#define __device__
#define __shared__ static __attribute__((section("cxxi_shared")))
#define __grid_constant__
#define __launch_bounds__(...)

struct uint2 {
  unsigned int x, y;
};
struct alignas(16) uint4 {
  unsigned int x, y, z, w;
};

namespace cxxi_emulation {

template <class... Args, size_t... I>
const char* launch(void (*kernel)(Args...), void* const* args, unsigned int threads, int64_t blocks, uint64_t seed, std::index_sequence<I...>) {
  static std::string error;
  Block block(threads, seed);
  blockDim.x = threads;
  gridDim.x = static_cast<unsigned int>(blocks);
  for (int64_t b = 0; b < blocks && block.error().empty(); ++b) {
    blockIdx.x = static_cast<unsigned int>(b);
    block.run([&] { kernel(*static_cast<Args*>(args[I])...); });
  }
  error = block.error();
  return error.c_str();
}
// args: addresses of the arguments, as cuLaunchKernel takes them. Returns "" or what went wrong.
template <class... Args>
const char* launch(void (*kernel)(Args...), void* const* args, unsigned int threads, int64_t blocks, uint64_t seed) {
  return launch(kernel, args, threads, blocks, seed, std::index_sequence_for<Args...>());
}

}  // namespace cxxi_emulation

// What the compiler calls at each access of memory. Only those of shared memory go on, in functions whose own accesses end here.
#define CXXI_HOOK extern "C" __attribute__((visibility("hidden"), no_sanitize("kernel-address"))) void
CXXI_HOOK __asan_loadN_noabort(uintptr_t address, size_t bytes) {
  if (cxxi_emulation::is_shared(address)) cxxi_emulation::Block::current()->note_load(reinterpret_cast<void*>(address), bytes);
}
CXXI_HOOK __asan_storeN_noabort(uintptr_t address, size_t bytes) {
  if (cxxi_emulation::is_shared(address)) cxxi_emulation::Block::current()->note_store(reinterpret_cast<void*>(address), bytes);
}
CXXI_HOOK __asan_handle_no_return() {}
#define CXXI_ACCESSES(bytes)                                                                               \
  CXXI_HOOK __asan_load##bytes##_noabort(uintptr_t address) { __asan_loadN_noabort(address, bytes); }      \
  CXXI_HOOK __asan_store##bytes##_noabort(uintptr_t address) { __asan_storeN_noabort(address, bytes); }
CXXI_ACCESSES(1)
CXXI_ACCESSES(2)
CXXI_ACCESSES(4)
CXXI_ACCESSES(8)
CXXI_ACCESSES(16)
#undef CXXI_ACCESSES
#undef CXXI_HOOK
