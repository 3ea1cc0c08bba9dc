// What the recorded calls hold at most when eager runs them one by one: the measure that plans must not exceed.
#pragma once

#include <cstdint>
#include <map>

#include "frontend/call_graph.h"

namespace cxxinductor::frontend {

// Each call allocates the results whose storage is new; a storage is freed after the last use of any value on it; inputs
// count while they live if the caller gives them up. Of each device that tensors are on, sizes at typical values, workspaces
// of the ops left out.
std::map<Device, int64_t> eager_peaks(const CallGraph& calls);

}  // namespace cxxinductor::frontend
