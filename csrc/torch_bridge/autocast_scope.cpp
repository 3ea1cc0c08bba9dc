#include "torch_bridge/autocast_scope.h"

#include <ATen/autocast_mode.h>

#include "ir/device_types.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {

AutocastScope::AutocastScope(const model::Autocast& autocast) {
  if (!autocast.is_on()) return;
  for (const DeviceTypeInfo& row : device_types()) {
    const auto device = static_cast<c10::DeviceType>(row.torch_device_type);
    const auto dtype = autocast.dtypes.find(row.type);
    const bool on = dtype != autocast.dtypes.end();
    before_.push_back({device, at::autocast::get_autocast_dtype(device), at::autocast::is_autocast_enabled(device)});
    at::autocast::set_autocast_enabled(device, on);
    if (on) at::autocast::set_autocast_dtype(device, to_torch(dtype->second));
  }
}

AutocastScope::~AutocastScope() {
  for (const Before& before : before_) {
    at::autocast::set_autocast_enabled(before.device, before.on);
    at::autocast::set_autocast_dtype(before.device, before.dtype);
  }
}

}  // namespace cxxinductor::torch_bridge
