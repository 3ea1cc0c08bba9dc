// Extracts a plan of one launch (or grouped launch) of a kernel. Dumps store it with each kernel's source, so that the kernel can be
// run, timed and checked alone.
#pragma once

#include "ir/plan/plan.h"

namespace cxxinductor::driver {

// Inputs: the buffers of the kernel's first launch, in the order of its parameters (of a grouped launch: of as many launches as
// the kernel takes at once), then an integer for each symbol that their sizes, the kernel or the grid need, in alphabetical
// order. No outputs: buffers that the kernel writes are inputs too. InternalError if nothing launches the kernel.
plan::Plan single_launch(const plan::Plan& plan, plan::KernelId kernel);

}  // namespace cxxinductor::driver
