#include "torch_bridge/step_ranges.h"

#include <ATen/record_function.h>

#include <optional>

#include "ir/plan/plan.h"

namespace cxxinductor::torch_bridge {
namespace {

// Library calls are ranges of the dispatcher's own.
class ProfilerRanges final : public runtime::StepObserver {
 public:
  void before_step(const runtime::CallView& call, size_t step) override {
    const std::span<const plan::Launch> launches = plan::launches_of(call.plan.steps[step]);
    if (launches.empty()) return;
    range_.emplace(at::RecordScope::FUNCTION);
    range_->before(call.plan.kernels[launches.front().kernel].name);
  }
  void after_step(const runtime::CallView&, size_t) override { range_.reset(); }

 private:
  std::optional<at::RecordFunction> range_;
};

}  // namespace

std::unique_ptr<runtime::StepObserver> ranges_of_steps() {
  if (!at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION)) return nullptr;
  return std::make_unique<ProfilerRanges>();
}

}  // namespace cxxinductor::torch_bridge
