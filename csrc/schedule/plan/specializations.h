// Kernels for sizes with more properties than all sizes of a graph have: symbols that are multiples of a vector's elements,
// rows that are short enough to stay in registers.
#pragma once

#include "ir/loops/loops.h"
#include "ir/target.h"
#include "schedule/plan/kernel.h"

namespace cxxinductor::schedule {

// Adds what the region can gain: wider accesses, persistent rows. Nothing on targets with few threads, whose vectors need no
// alignment, and for regions without symbols.
void add_specializations(const loops::Program& program, const loops::Region& region, const Target& target,
                         MappedKernel& mapped);

}  // namespace cxxinductor::schedule
