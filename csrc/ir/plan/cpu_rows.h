// Rows on the CPU: the stack of a thread that executes persistent ones, an array per Persistent value, and updates of its states.
#pragma once

#include <cstdint>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

inline constexpr int64_t most_persistent_bytes = 512 * 1024;  // of all arrays of a kernel

// Of rows of `length` elements.
int64_t persistent_bytes(const loops::Region& region, const IdVector<StmtId, MemorySpace>& memory_spaces, int64_t length);

// Sets of states among which the vectors of a row are dealt out.
int sets_of_states(const Mapping& mapping);
// Updates of the busiest state in a pass along the last variable of the row, at most: vectors go to the sets, and what is left to two others.
sym::Expr updates_of_pass(const Mapping& mapping, const loops::Region& region);

}  // namespace cxxinductor::plan
