// The kernels of a plan that is being made: kernels with equal text are one kernel.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ir/plan/plan.h"

namespace cxxinductor::schedule {

class KernelTable {
 public:
  explicit KernelTable(plan::Plan& plan) : plan_(plan) {}

  // Names the kernel after its number and the hint, a C identifier. Kernels with sizes as arguments may differ in their hints of traffic alone;
  // the first one's stay.
  plan::KernelId intern(plan::Kernel kernel, std::string_view hint);

  // The hint of a kernel that was interned.
  static std::string hint_of(const plan::Kernel& kernel);

 private:
  plan::Plan& plan_;
  std::map<std::string, plan::KernelId> kernels_;  // by text without name
};

}  // namespace cxxinductor::schedule
