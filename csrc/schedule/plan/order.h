// The order of a program's steps, chosen for the memory that is alive at once.
#pragma once

#include <vector>

#include "ir/loops/loops.h"

namespace cxxinductor::schedule {

// Positions of program.steps in a legal order: their own order, or one whose peak is clearly lower.
std::vector<size_t> reorder_for_peak_memory(const loops::Program& program);

}  // namespace cxxinductor::schedule
