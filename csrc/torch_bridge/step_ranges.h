// Ranges around the steps of a call for those who watch it: torch's profiler, where one is active, and NVTX (option nvtx). A call
// that nobody watches has no observer.
#pragma once

#include <memory>
#include <string>

#include "runtime/observer.h"

namespace cxxinductor::torch_bridge {

// A launch is named as its kernel, a library call as "aten::mm layers.0.head": the callee and the module of the model that calls it.
// "" for steps that only allocate and free.
std::string name_of_step(const plan::Plan& plan, const plan::Step& step);

// Null where nobody watches. The profiler has ranges of the dispatcher's own for library calls.
std::unique_ptr<runtime::StepObserver> ranges_of_steps(bool nvtx);

}  // namespace cxxinductor::torch_bridge
