// The stack of a thread that executes persistent rows on the CPU: one array per Persistent value.
#pragma once

#include <cstdint>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

inline constexpr int64_t most_persistent_bytes = 512 * 1024;  // of all arrays of a kernel

// Of rows of `length` elements.
int64_t persistent_bytes(const loops::Region& region, const IdVector<StmtId, MemorySpace>& memory_spaces, int64_t length);

}  // namespace cxxinductor::plan
