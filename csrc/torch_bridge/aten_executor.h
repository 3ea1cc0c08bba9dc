// Runs a recorded call graph through torch's dispatcher, call by call: tier 0, and the graph fallback when a graph
// cannot be compiled. Same values as eager below autograd, at eager's speed.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <vector>

#include "frontend/call_graph.h"

namespace cxxinductor::torch_bridge {

class AtenExecutor {
 public:
  explicit AtenExecutor(frontend::CallGraph calls);  // Unsupported when a callee is not known to the dispatcher
  ~AtenExecutor();
  // inputs: a tensor or int for each graph input, in order; released after their last use. Thread-safe.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs) const;
  const frontend::CallGraph& calls() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cxxinductor::torch_bridge
