// Ranges around the launches of a call, named as the kernels are, for who watches it: torch's profiler, where one is active, and
// NVTX. A call that nobody watches has no observer.
#pragma once

#include <memory>

#include "runtime/observer.h"

namespace cxxinductor::torch_bridge {

// Null where nobody watches.
std::unique_ptr<runtime::StepObserver> ranges_of_steps();

}  // namespace cxxinductor::torch_bridge
