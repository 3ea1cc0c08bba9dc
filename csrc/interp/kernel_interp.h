// Executes one launch of a plan's kernel by its segments and element offsets. The plan interpreter does so for each launch, and
// checks compare a launched kernel with it.
#pragma once

#include "interp/region_interp.h"
#include "ir/plan/plan.h"

namespace cxxinductor::interp {

// memory: one flat memory reference per parameter, with the kernel's offsets. symbols: those of the kernel.
void run_kernel(const plan::Kernel& kernel, const Symbols& symbols, const RegionMemory& memory);

// The kernel with `var` running over [begin, begin + count) alone: the same values at those points, for variables that
// nothing reduces over. The mapping is left as it was: the part is for run_kernel alone.
plan::Kernel part_of(const plan::Kernel& kernel, plan::VarId var, int64_t begin, int64_t count);

}  // namespace cxxinductor::interp
