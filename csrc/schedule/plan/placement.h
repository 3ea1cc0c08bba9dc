// Which temporaries get memory of their own instead of a place in the call's arena.
//
// The arena is one allocation that lives as long as the call: cheap for the host, but it is there while the outputs pile up
// and before the inputs of a backward graph are gone. Large temporaries go to torch's allocator when that lowers the peak.
#pragma once

#include <span>
#include <vector>

#include "sym/simplify.h"

namespace cxxinductor::schedule {

struct Resident {
  double bytes = 0;
  int first = 0, last = 0;  // steps, inclusive
};

// temporaries: those that the arena could hold. held: what is there anyway (outputs, results of externs). inputs: what the
// caller may have given up, so that it goes with its last use. Returns a flag for each temporary.
std::vector<bool> choose_own_memory(std::span<const Resident> temporaries, std::span<const Resident> held,
                                    std::span<const Resident> inputs, int steps);

}  // namespace cxxinductor::schedule
