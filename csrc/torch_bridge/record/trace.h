// A function of tensors and integers as a call graph: it runs once, on tensors without memory.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <optional>
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

// A function and its gradients, in one graph.
struct GradientTrace {
  // Outputs: those of the function, then the gradient with regard to each differentiable input, or none.
  // Inputs: those of the function, one gradient of each differentiable output, captured tensors; not in that order.
  Trace trace;
  size_t results = 0;                            // of the function
  std::vector<uint32_t> differentiable_inputs;   // positions of arguments and captured tensors that require gradients
  std::vector<uint32_t> captured_inputs;         // positions of trace.captured
  std::vector<uint32_t> output_gradients;        // positions of inputs
  std::vector<uint32_t> differentiable_outputs;  // positions of outputs
};

// requires_gradient: of each argument of the pattern. None where no result depends on what requires gradients.
// Unsupported as above, and where gradients would have to flow through memory that the function shares or writes.
std::optional<GradientTrace> trace_with_gradients(std::string name, const TracedFunction& function, const CallPattern& pattern,
                                                  const std::vector<bool>& requires_gradient);

}  // namespace cxxinductor::torch_bridge
