// What the recorded calls hold at most when eager runs them one by one: the measure that plans must not exceed.
#pragma once

#include <cstdint>

#include "frontend/call_graph.h"

namespace cxxinductor::frontend {

// Each call allocates the results whose storage is new; a storage is freed after the last use of any value on it; inputs
// count while they live if the caller gives them up. Memory of one type of device, sizes at typical values, workspaces of
// the ops left out.
int64_t eager_peak(const CallGraph& calls, DeviceType device);

}  // namespace cxxinductor::frontend
