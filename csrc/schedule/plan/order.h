// Orders a program's steps for a low memory peak.
#pragma once

#include <vector>

#include "ir/loops/loops.h"

namespace cxxinductor::schedule {

// Positions of program.steps in a legal order: their own order, or one whose peak is clearly lower.
std::vector<size_t> reorder_for_peak_memory(const loops::Program& program);

}  // namespace cxxinductor::schedule
