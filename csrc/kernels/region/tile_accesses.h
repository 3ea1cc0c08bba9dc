// Accesses of kernels with tiles, on GPUs and the CPU.
#pragma once

#include "ir/plan/plan.h"
#include "ir/target.h"
#include "kernels/region/flat_region.h"

namespace cxxinductor::kernels {

// Transposed loads are Staged as long as their tiles take at most `most_bytes` of fast memory.
void describe_tile_accesses(plan::Kernel& kernel, const FlatRegion& flat, const Target& target, int64_t most_bytes);

}  // namespace cxxinductor::kernels
