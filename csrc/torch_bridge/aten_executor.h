// Runs a recorded call graph through torch's dispatcher, call by call: with option tier=aten, and where a graph cannot
// be compiled. Same values as eager below autograd, at eager's speed.
#pragma once

#include <ATen/core/ivalue.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/call_graph.h"

namespace cxxinductor::torch_bridge {

class AtenExecutor {
 public:
  // Unsupported when a callee is not known to the dispatcher, or an output is neither a tensor nor an integer nor none.
  explicit AtenExecutor(model::CallGraph calls);
  ~AtenExecutor();
  // inputs: a tensor or int for each graph input, in order; released after their last use. Thread-safe.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs) const;
  const model::CallGraph& calls() const;

  // The same, one call at a time, on values that the caller keeps (for checks). Values are what inputs and calls gave;
  // undefined until then.
  struct State {
    std::vector<c10::IValue> values;  // one for each value of the call graph
    std::map<std::string, int64_t, std::less<>> symbols;
  };
  State bind(std::vector<c10::IValue> inputs) const;
  void run_call(size_t call, State& state) const;
  const c10::FunctionSchema& schema(size_t call) const;
  bool is_random(size_t call) const;  // draws from a generator: a second run gives other values

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cxxinductor::torch_bridge
