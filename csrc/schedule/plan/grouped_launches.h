// Groups launches of like kernels into one launch. An optimiser's step is the same few kernels for each of hundreds of
// parameters, as are the updates of running statistics; launched separately they would mostly wait for launches.
//
// Steps move to earlier steps with the same key, so inputs are read and freed no later than before. Their results live
// longer; where memory counts, steps move only while that costs little.
#pragma once

#include <string>
#include <vector>

#include "ir/loops/loops.h"
#include "schedule/plan/buffer_slices.h"

namespace cxxinductor::schedule {

// For each step of the program: whether enough other steps resemble it to compute a key.
std::vector<bool> may_be_together(const loops::Program& program);

// Steps of the program (their positions) in groups that run one after the other. A group of several holds regions with
// the same key that do not depend on one another; keys: by step, empty for those that stay alone.
std::vector<std::vector<size_t>> group_steps(const loops::Program& program, const std::vector<std::string>& keys, const BufferSlices& slices);

// By step: the number of its group.
std::vector<int> times_of(const loops::Program& program, const std::vector<std::vector<size_t>>& groups);

}  // namespace cxxinductor::schedule
