// Observes a call before and after each step, with the buffers in memory. For checks; a call without an observer runs none of
// this.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "runtime/host.h"

namespace cxxinductor::runtime {

struct CallView {
  const plan::Plan& plan;
  Host& host;
  // Of plan.symbols, in order; then of those that steps have defined so far, in the order of the steps.
  const std::vector<std::string>& symbol_names;
  const std::vector<int64_t>& symbols;  // as many as are known
  std::span<void* const> addresses;     // element 0 of each plan buffer; null or stale for those that hold nothing at this step
  // The host's tensor of each plan buffer that has one now; others are without owner. A tensor of an extern's may be on another
  // device than its buffer says.
  std::span<const TensorRef> tensors;
};

// An exception of an observer ends the call and reaches its caller like an error of the step.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // step: position in plan.steps. On a GPU the step is queued, not finished, when after_step is called; copies through
  // the host are queued behind it.
  virtual void before_step(const CallView& call, size_t step) = 0;
  virtual void after_step(const CallView& call, size_t step) = 0;
};

}  // namespace cxxinductor::runtime
