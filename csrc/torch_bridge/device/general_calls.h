// The calls of a recording for other numbers: sizes that differ between recordings become symbols, floats become inputs.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include "model/size_guards.h"
#include "torch_bridge/device/calls.h"
#include "torch_bridge/record/call_pattern.h"

namespace cxxinductor::torch_bridge {

struct GeneralCalls {
  model::CallGraph graph;  // inputs: CallPattern::take_inputs; without outputs
  std::vector<model::SizeGuard> guards;
};
// pattern: of the inputs, then integers and floats among the arguments of the calls, which it matches. Unsupported where the
// sizes of a result cannot be inferred, or where they would not be those that were recorded.
GeneralCalls general_calls(RecordedCalls calls, const CallPattern& pattern);

}  // namespace cxxinductor::torch_bridge
