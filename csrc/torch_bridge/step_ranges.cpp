#include "torch_bridge/step_ranges.h"

#include <ATen/record_function.h>

#include <optional>
#include <string>

#include "ir/plan/plan.h"
#include "torch_bridge/nvtx.h"

namespace cxxinductor::torch_bridge {

std::string name_of_step(const plan::Plan& plan, const plan::Step& step) {
  if (const std::span<const plan::Launch> launches = plan::launches_of(step); !launches.empty()) return plan.kernels[launches.front().kernel].name;
  const auto* call = std::get_if<plan::CallExtern>(&step);
  if (!call) return "";
  const bool has_module = plan.origins.contains(call->origin) && !plan.origins[call->origin].module.empty();
  return has_module ? call->callee + " " + plan.origins[call->origin].module : call->callee;
}

namespace {

// An exception of a step destroys the observer, and ends the ranges that are open.
class StepRanges final : public runtime::StepObserver {
 public:
  StepRanges(bool profiler, bool nvtx) : profiler_(profiler), nvtx_(nvtx) {}

  void before_step(const runtime::CallView& call, size_t step) override {
    const std::string name = name_of_step(call.plan, call.plan.steps[step]);
    if (name.empty()) return;
    if (nvtx_) nvtx_range_.emplace(name);
    if (!profiler_ || plan::launches_of(call.plan.steps[step]).empty()) return;
    profiler_range_.emplace(at::RecordScope::FUNCTION);
    profiler_range_->before(name);
  }
  void after_step(const runtime::CallView&, size_t) override {
    profiler_range_.reset();
    nvtx_range_.reset();
  }

 private:
  const bool profiler_, nvtx_;
  std::optional<NvtxRange> nvtx_range_;
  std::optional<at::RecordFunction> profiler_range_;
};

}  // namespace

std::unique_ptr<runtime::StepObserver> ranges_of_steps(bool nvtx) {
  const bool profiler = at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION).has_value();
  if (!profiler && !nvtx) return nullptr;
  return std::make_unique<StepRanges>(profiler, nvtx);
}

}  // namespace cxxinductor::torch_bridge
