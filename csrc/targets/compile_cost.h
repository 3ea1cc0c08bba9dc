// How long compiling a kernel takes, as a number to compare kernels by: the longest are started first, and units of a text get equal shares.
#pragma once

#include "ir/plan/plan.h"

namespace cxxinductor::targets {

// Grows with the statements and, for threads in blocks, with how often their loops are unrolled.
double compile_cost(const plan::Kernel& kernel);

}  // namespace cxxinductor::targets
