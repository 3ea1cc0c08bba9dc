// Chooses the temporaries that are allocated by themselves instead of in the call's arena.
//
// The arena is one allocation that lives as long as the call. It is cheap for the host, but it holds all of its bytes while
// outputs accumulate and before the inputs of a backward graph are freed. Temporaries move out of it one by one, the largest
// at the arena's fullest step first, and as few as the peak needs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/live_ranges.h"

namespace cxxinductor::schedule {

// temporaries: those that the arena could hold. held: what is alive anyway (outputs, results of externs, donated
// inputs). bound: bytes that should not be exceeded where that is possible. Returns a flag for each temporary.
std::vector<bool> choose_standalone(std::span<const LiveRange> temporaries, std::span<const LiveRange> held, int64_t bound);

}  // namespace cxxinductor::schedule
