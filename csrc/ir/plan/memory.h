// Bytes that a call of a plan holds, as a walk over its steps: what is asserted in tests and shown to people.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

struct MemoryProfile {
  // The most bytes held at once by what the call allocates: its arena from begin to end, buffers of their own, results of
  // extern calls while they live, outputs until the end. Workspaces of extern calls are not in it.
  int64_t peak = 0;
  // The most bytes of values that are alive at once: no placement of the same steps in the same order holds less.
  int64_t lower_bound = 0;
};

// Bytes of Input buffers count too, each until its last use, when the caller gives its inputs up (a backward graph does).
// None: a size is symbolic.
std::optional<MemoryProfile> profile_memory(const Plan& plan, bool inputs_given_up);

}  // namespace cxxinductor::plan
