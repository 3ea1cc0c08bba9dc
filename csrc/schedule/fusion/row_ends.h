// Finds regions that should merge with their row first: the last step of a row (softmax's division, a norm's scale) that a
// concatenation reads.
//
// Both the row and the concatenation could take it in. With its row it reads nothing twice, and its result becomes a slice of
// the concatenation (plan/buffer_slices.h). In the select region it would read again what the row's reductions read.
#pragma once

#include "schedule/fusion/dependencies.h"

namespace cxxinductor::schedule {

// Whether `producer` is pointwise and follows a reduction, through other pointwise regions at most, and `reader` reads
// its `buffer` once and under a mask.
bool ends_rows_of_select(const Dependencies& dependencies, StepId producer, StepId reader, loops::BufferId buffer);

}  // namespace cxxinductor::schedule
