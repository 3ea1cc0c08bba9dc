// Chooses how many groups of a thread have their loads under way before the first of them is computed (plan::Segment::loads_ahead).
#pragma once

#include "ir/plan/plan.h"

namespace cxxinductor::kernels {

// The kernel is complete otherwise: mapping, segments, accesses and memory spaces. Changes those whose loops are not unrolled by the mapping
// itself: persistent rows and tiles of GPUs.
void choose_loads_ahead(plan::Kernel& kernel);

}  // namespace cxxinductor::kernels
