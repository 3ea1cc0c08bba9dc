// Which temporaries get memory of their own instead of a place in the call's arena.
//
// The arena is one allocation that lives as long as the call: cheap for the host, but all of it is there while outputs pile
// up and before the inputs of a backward graph are gone. Temporaries move out of it one by one, the largest where the arena
// is fullest first, and as few of them as the peak needs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/live_ranges.h"

namespace cxxinductor::schedule {

// temporaries: those that the arena could hold. held: what is there anyway (outputs, results of externs, inputs that the
// caller gave up). bound: bytes that should not be exceeded where that is possible. Returns a flag for each temporary.
std::vector<bool> choose_standalone(std::span<const LiveRange> temporaries, std::span<const LiveRange> held,
                                    int64_t bound);

}  // namespace cxxinductor::schedule
