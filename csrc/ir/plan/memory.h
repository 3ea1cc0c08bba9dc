// Bytes that a call of a plan holds, as a walk over its steps: what is asserted in tests and shown to people.
//
// Counted is memory of the target's device that the call allocates, and inputs that the caller gives up, until their last
// use. Blocks are as large as torch's allocators make them; symbolic sizes are taken at typical values; workspaces of
// extern calls are not in it.
#pragma once

#include <cstdint>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

struct MemoryProfile {
  // The most bytes held at once: the arena from begin to end, other buffers while they live, outputs until the end.
  int64_t peak = 0;
  // The most bytes of values that are alive at once: no placement of the same steps in the same order holds less.
  int64_t lower_bound = 0;
  int peak_step = 0;  // where the peak is, an index into Plan::steps (their number: when outputs are handed out)
};

MemoryProfile profile_memory(const Plan& plan);

}  // namespace cxxinductor::plan
