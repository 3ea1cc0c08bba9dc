// The one distinction that the scheduler makes between kinds of target.
#pragma once

#include "ir/target.h"

namespace cxxinductor::schedule {

// Many threads that exchange registers and hide latency, rather than few threads with vectors and caches.
inline bool is_gpu(const Target& target) { return target.warp > 1; }

}  // namespace cxxinductor::schedule
