#include "torch_bridge/autocast_scope.h"

#include <ATen/autocast_mode.h>

#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {

AutocastScope::AutocastScope(const model::Autocast& autocast) {
  if (!autocast.is_on()) return;
  const auto set = [this](c10::DeviceType device, const std::optional<DType>& dtype) {
    before_.push_back({device, at::autocast::get_autocast_dtype(device), at::autocast::is_autocast_enabled(device)});
    at::autocast::set_autocast_enabled(device, dtype.has_value());
    if (dtype) at::autocast::set_autocast_dtype(device, to_torch(*dtype));
  };
  set(c10::kCPU, autocast.cpu);
  set(c10::kCUDA, autocast.cuda);
}

AutocastScope::~AutocastScope() {
  for (const Before& before : before_) {
    at::autocast::set_autocast_enabled(before.device, before.on);
    at::autocast::set_autocast_dtype(before.device, before.dtype);
  }
}

}  // namespace cxxinductor::torch_bridge
