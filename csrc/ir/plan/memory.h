// Memory of a call of a plan, by its steps: for tests, decisions and explain().
//
// Counted is memory of one device that the call allocates, and inputs that the caller gives up, until their last use. Blocks are as large as torch's allocators
// make them; symbolic sizes are taken as size hints; workspaces of extern calls are not in it.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

struct MemoryProfile {
  // The most bytes held at once: arenas from their first use to the end, other buffers while they live, outputs until the
  // end.
  int64_t peak = 0;
  // The most bytes of values that are alive at once: no placement of the same steps in the same order holds less.
  int64_t lower_bound = 0;
  int peak_step = 0;  // where the peak is, an index into Plan::steps (their number: when outputs are handed out)
};

MemoryProfile profile_memory(const Plan& plan, Device device);
// Of the plan's main device.
inline MemoryProfile profile_memory(const Plan& plan) { return profile_memory(plan, plan.devices.front()); }
// By how much the plan holds more than its eager_peaks say, over all devices that have one.
int64_t bytes_beyond_eager(const Plan& plan);

// For each step the arenas that are allocated before it.
std::vector<std::vector<uint32_t>> arenas_by_first_use(const Plan& plan);

}  // namespace cxxinductor::plan
