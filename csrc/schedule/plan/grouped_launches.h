// Which kernels run together: an optimiser's step is the same few kernels for each of hundreds of parameters, and so are
// the updates of a network's running statistics. As launches of their own most of their time would be spent on launching.
//
// Steps move to earlier ones with the same key, so that inputs are read, and given up, no later than before. Whatever a
// step makes is there earlier, which may cost memory: where it does, steps move only as long as that is little.
#pragma once

#include <string>
#include <vector>

#include "ir/loops/loops.h"
#include "schedule/plan/buffer_slices.h"

namespace cxxinductor::schedule {

// For each step of the program whether it resembles enough others to be worth a key.
std::vector<bool> may_be_together(const loops::Program& program);

// Steps of the program (their positions) in groups that run one after the other. A group of several holds regions with
// the same key that do not depend on one another; keys: by step, empty for those that stay alone.
std::vector<std::vector<size_t>> group_steps(const loops::Program& program, const std::vector<std::string>& keys,
                                             const BufferSlices& slices);

// By step: the number of its group.
std::vector<int> times_of(const loops::Program& program, const std::vector<std::vector<size_t>>& groups);

}  // namespace cxxinductor::schedule
