// Merges kernels that differ in sizes alone into one kernel with the sizes as arguments. Compile time grows with the number of
// kernels, and networks whose layers grow by a few channels have hundreds that differ in nothing else.
#pragma once

#include "ir/plan/plan.h"
#include "ir/target.h"

namespace cxxinductor::schedule {

// Merges kernels of the plan that are equal up to integers in their extents, strides and offsets, and up to f32 constants. What
// differs becomes symbols of the merged kernel, and each launch gives its own. Mapping, vector widths, divisors and lengths of
// rows (other than short ones across memory) are equal in all kernels that are merged, so that a merged kernel loses nothing but
// constants. Where losing them takes a noticeable part of a launch's time on a GPU, the launch's former kernel becomes its
// specialization, which is compiled in the background. Plans of few kernels stay as they are.
// Whether there were any to merge.
bool generalize_kernels(plan::Plan& plan, const Targets& targets);

}  // namespace cxxinductor::schedule
