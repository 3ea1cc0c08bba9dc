// A function of tensors that runs compiled, or as it is where it cannot be.
#pragma once

#include <ATen/core/ivalue.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/fork_mutex.h"
#include "support/options.h"
#include "torch_bridge/record/specializations.h"

namespace cxxinductor::torch_bridge {

class CompiledFunction {
 public:
  CompiledFunction(std::string name, TracedFunction function, const Options& options);

  // Thread-safe, as far as the function is.
  std::vector<c10::IValue> run(const std::vector<c10::IValue>& arguments);
  std::string describe() const;

 private:
  using NeedGradients = std::vector<bool>;  // by argument; empty: grad mode is off
  struct Traced {
    Tracer tracer;
    Specializations forms;
  };
  static NeedGradients need_gradients(const std::vector<c10::IValue>& arguments);
  Traced& traced(const NeedGradients& arguments);

  const std::string name_;
  const TracedFunction function_;
  const Options options_;
  mutable ForkMutex mutex_;  // guards the map
  std::map<NeedGradients, std::unique_ptr<Traced>> traced_;
  std::atomic<int64_t> calls_ = 0, uncompiled_calls_ = 0;
};

}  // namespace cxxinductor::torch_bridge
