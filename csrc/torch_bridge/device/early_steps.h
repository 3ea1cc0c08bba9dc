// Which steps of a compiled recording may run while the next recording, which is expected to be the same, goes on.
//
// A prediction can be wrong, and its results are dropped then. So nothing runs early that another run could not follow: no
// write to an input, and no step after it. Nor does anything run that would hold more memory than eager does by then, or wait for
// the GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/plan/plan.h"
#include "torch_bridge/device/calls.h"

namespace cxxinductor::torch_bridge {

// Once `calls` are recorded, the first `steps` may run. draws: one of them draws random numbers.
struct EarlyPoint {
  size_t calls = 0, steps = 0;
  bool draws = false;
};

// The inputs that come long after the others: those of an optimizer, which the program calls after the backward. None where inputs
// come all along. known_after: by input, how many of the `calls` are recorded once it is known.
std::vector<uint32_t> late_inputs(const std::vector<size_t>& known_after, size_t calls);

// In the order of their calls, and of their steps. known_after: by input of the plan.
std::vector<EarlyPoint> early_points(const plan::Plan& plan, const RecordedCalls& calls, const std::vector<size_t>& known_after);

}  // namespace cxxinductor::torch_bridge
