// What a unit of CUDA text includes first to run on the host: the words of CUDA itself, and launches. The intrinsics are those of this folder,
// because the compiler looks here before it looks into kernels_templates. Hundreds of units include it: what need not be compiled with each of
// them is behind block.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <tuple>

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

static cxxi_dim threadIdx, blockIdx, blockDim, gridDim;

extern "C" {
extern char __start_cxxi_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_cxxi_shared[] __attribute__((weak, visibility("hidden")));
}

namespace cxxi_emulation {

static Block* block = nullptr;  // the one that runs

// Without accesses that are watched: it is called at each one.
__attribute__((no_sanitize("kernel-address"))) static bool is_shared(uintptr_t address) {
  return address - uintptr_t(__start_cxxi_shared) < uintptr_t(__stop_cxxi_shared) - uintptr_t(__start_cxxi_shared);
}

// args: addresses of the arguments, as cuLaunchKernel takes them.
template <class... Args>
void launch(void (*kernel)(Args...), void* const* args, Launcher& launcher) {
  const auto body = [&] {
    void* const* next = args;
    const std::tuple<Args*...> values{static_cast<Args*>(*next++)...};  // in order: braces
    std::apply([&](auto*... value) { kernel(*value...); }, values);
  };
  launcher.run({[](const void* b) { (*static_cast<decltype(body)*>(b))(); }, &body, &threadIdx, &blockIdx, &blockDim, &gridDim, &block, __start_cxxi_shared,
                __stop_cxxi_shared});
}

}  // namespace cxxi_emulation

// What the compiler calls at each access of memory (races.h). Only those of shared memory go on, in functions whose own accesses end here.
#define CXXI_HOOK extern "C" __attribute__((visibility("hidden"), no_sanitize("kernel-address"))) void
CXXI_HOOK __asan_loadN_noabort(uintptr_t address, size_t bytes) {
  if (cxxi_emulation::is_shared(address)) cxxi_emulation::block->note_load(reinterpret_cast<void*>(address), bytes);
}
CXXI_HOOK __asan_storeN_noabort(uintptr_t address, size_t bytes) {
  if (cxxi_emulation::is_shared(address)) cxxi_emulation::block->note_store(reinterpret_cast<void*>(address), bytes);
}
CXXI_HOOK __asan_handle_no_return() {}
#define CXXI_ACCESSES(bytes)                                                                          \
  CXXI_HOOK __asan_load##bytes##_noabort(uintptr_t address) { __asan_loadN_noabort(address, bytes); } \
  CXXI_HOOK __asan_store##bytes##_noabort(uintptr_t address) { __asan_storeN_noabort(address, bytes); }
CXXI_ACCESSES(1)
CXXI_ACCESSES(2)
CXXI_ACCESSES(4)
CXXI_ACCESSES(8)
CXXI_ACCESSES(16)
#undef CXXI_ACCESSES
#undef CXXI_HOOK
