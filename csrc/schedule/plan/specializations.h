// Plans kernels for the common sizes of a graph with symbols: symbols that are multiples of a vector's elements, rows short
// enough for registers.
#pragma once

#include "ir/loops/loops.h"
#include "ir/target.h"
#include "schedule/plan/kernel.h"

namespace cxxinductor::schedule {

// Adds the specializations that have wider accesses or persistent rows. None on the CPU, whose vectors need no alignment, and
// none for regions without symbols.
void add_specializations(const loops::Program& program, const loops::Region& region, const Target& target, MappedKernel& mapped);

}  // namespace cxxinductor::schedule
