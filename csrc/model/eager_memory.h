// Peak memory of the recorded calls run one by one, as eager runs them: plans should not exceed it.
#pragma once

#include <cstdint>
#include <map>

#include "model/call_graph.h"

namespace cxxinductor::model {

// Each call allocates the results whose storage is new; a storage is freed after the last use of any value on it; donated
// inputs count while they live. Per device that tensors are on; symbolic sizes enter as size hints; workspaces of ops are not
// counted.
std::map<Device, int64_t> eager_peaks(const CallGraph& calls);

}  // namespace cxxinductor::model
