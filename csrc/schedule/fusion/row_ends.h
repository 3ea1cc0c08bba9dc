// Which regions better wait: what a row ends with (softmax's division, a norm's scale) and a concatenation reads.
//
// Both could take it in. With its row it reads nothing twice and its result is written where the concatenation has it
// (plan/buffer_slices.h); in the choice among what is joined it would read again what the row's reductions read.
#pragma once

#include "schedule/fusion/dependencies.h"

namespace cxxinductor::schedule {

// Whether `producer` is pointwise and follows a reduction, through other pointwise regions at most, and `reader` reads
// its `buffer` once and under a mask.
bool ends_rows_of_select(const Dependencies& dependencies, StepId producer, StepId reader, loops::BufferId buffer);

}  // namespace cxxinductor::schedule
