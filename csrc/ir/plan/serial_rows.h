// Sums across serial rows, and the shared memory of a block for them: its size, for the scheduler that chooses, the family that addresses and the
// launch that requests it.
#pragma once

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

// Is it a reduction over the serial variable, and over no other?
bool is_across(const Kernel& kernel, StmtId id);

// A reduction with a single state keeps it in this type.
DType state_dtype(const loops::Region& region, const loops::Reduce& reduce);

// Bytes of the states of a row of `groups` groups; what follows them is aligned for wide accesses.
int64_t shared_states_bytes(int64_t groups, int vector_width, DType state);

// Of all reductions of the kernel that are MemorySpace::Shared, in the order of the body.
int64_t serial_shared_bytes(const Kernel& kernel);
// Groups of a row of constant length.
int64_t groups_of_row(const Kernel& kernel);

// Where a block has several rows at a time, their states in registers are joined at the end, `rows` of them at a time, through `bytes` of
// shared memory: as many as fit.
struct JoinedRows {
  int64_t rows = 1, bytes = 0;
};
JoinedRows joined_rows(const Kernel& kernel);

}  // namespace cxxinductor::plan
