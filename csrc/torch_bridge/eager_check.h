// check=eager: what each step of a call leaves in memory is compared with what ATen makes of the same calls. The first
// kernel whose output differs ends the call with a KernelMismatch that names it.
//
// A value that the compiled graph computes is compared once it is complete, and then takes the reference's place: later
// references start from it, so rounding does not add up over the graph and the kernel that is named is the one that is
// wrong. Memory that no call of the model stands for (statistics of a norm, say) is checked through its readers.
#pragma once

#include <memory>
#include <vector>

#include "driver/kernel_check.h"
#include "frontend/import.h"
#include "support/options.h"
#include "torch_bridge/aten_executor.h"

namespace cxxinductor::torch_bridge {

// What the checks of all calls of a graph share.
class EagerReference {
 public:
  // names: from import_graph. Unsupported when a call writes into a tensor that is no input: such calls cannot be
  // repeated one by one.
  EagerReference(model::CallGraph calls, const std::vector<frontend::ImportedName>& names, const plan::Plan& plan, const Options& options);
  ~EagerReference();
  // For one call with these inputs, of which those that the call will write to are copied. Must not outlive this.
  std::unique_ptr<driver::KernelCheck> check(std::vector<c10::IValue> inputs) const;

 private:
  struct CheckPlan;
  class Check;
  std::unique_ptr<CheckPlan> check_plan_;
};

}  // namespace cxxinductor::torch_bridge
