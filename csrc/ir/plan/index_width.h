// How wide the indices of a kernel are (Variant::index64): what planner, compiler and runtime agree on.
#pragma once

#include <cstdint>

#include "ir/plan/plan.h"
#include "sym/simplify.h"

namespace cxxinductor::plan {

// A kernel whose index_limit reaches this needs 64-bit indices.
inline constexpr int64_t index32_limit = int64_t{1} << 31;
// Plans promise 32-bit indices (Kernel::always_index32) below this: no index overflows in a thread beyond the last point either.
inline constexpr int64_t always_index32_limit = index32_limit - (int64_t{1} << 20);

// Whether all sizes that the assumptions allow need 64-bit indices, so that the other variants never run.
inline bool needs_index64(const Kernel& kernel) { return !kernel.always_index32 && sym::bounds(kernel.index_limit, kernel.assumptions).low >= index32_limit; }

}  // namespace cxxinductor::plan
