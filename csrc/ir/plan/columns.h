// Shared memory in which the threads of a Columns block combine their reductions: its size, for the scheduler that keeps it below what a block
// is granted, the verifier and the family.
#pragma once

#include <cstdint>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

// Bytes of the widest reduction's states, one per thread and lane.
int64_t columns_shared_bytes(const loops::Region& region, const Mapping& mapping);

}  // namespace cxxinductor::plan
