// A function of tensors and integers as a call graph: it runs once, on tensors without memory.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <string>
#include <vector>

#include "model/call_graph.h"
#include "model/size_guards.h"
#include "torch_bridge/record/call_pattern.h"

namespace cxxinductor::torch_bridge {

// Tensors and integers come and go; arguments that are constants of the pattern arrive as they are.
using TracedFunction = std::function<std::vector<c10::IValue>(std::vector<c10::IValue> arguments)>;

struct Trace {
  // Inputs: the tensors and integers among the arguments, in their order, then `captured`. What the calls write to,
  // they write to: see model/passes/functionalize.h.
  model::CallGraph calls;
  std::vector<model::SizeGuard> guards;  // the calls are those of the function wherever these hold
  std::vector<at::Tensor> captured;      // tensors with memory that the function reads beside its arguments
};

// Unsupported where the function does what cannot be recorded: it reads elements, or returns other things than tensors
// and integers.
Trace trace(std::string name, const TracedFunction& function, const CallPattern& pattern);

}  // namespace cxxinductor::torch_bridge
