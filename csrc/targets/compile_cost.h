// How long compiling a kernel takes, as a number to compare kernels by: the longest are started first, and units of a text get equal shares.
#pragma once

#include "ir/plan/plan.h"

namespace cxxinductor::targets {

// Of statements, as often as loops of threads are unrolled.
double compile_cost(const plan::Kernel& kernel);

}  // namespace cxxinductor::targets
