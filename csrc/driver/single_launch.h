// A plan that does nothing but one launch (or batch) of a kernel of another plan: what dumps keep beside each kernel's source, so
// that it can be run, timed and checked alone.
#pragma once

#include "ir/plan/plan.h"

namespace cxxinductor::driver {

// Inputs: the buffers of the kernel's first launch, in the order of its parameters (of a batch: of as many launches as
// the kernel takes at once), then an integer for each symbol
// that their sizes, the kernel or the grid need, in alphabetical order. No outputs: what the kernel writes are inputs
// too. InternalError when nothing launches the kernel.
plan::Plan single_launch(const plan::Plan& plan, plan::KernelId kernel);

}  // namespace cxxinductor::driver
