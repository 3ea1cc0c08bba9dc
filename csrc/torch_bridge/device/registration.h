// The recorded device in PyTorch: its name, hooks, guard, and kernels of PrivateUse1.
#pragma once

#include <cxxinductor/options.h>

#include <optional>
#include <string>

#include "torch_bridge/device/lazy_device.h"

namespace cxxinductor::torch_bridge {

// Once in a process, for a name and a backing. UserError where PrivateUse1 is taken, by us or by somebody else, or
// PyTorch has no such backing device.
void register_lazy_device(const std::string& name, std::optional<c10::DeviceType> backing, const Options& options);

// UserError before it is registered.
LazyDevice& lazy_device();

}  // namespace cxxinductor::torch_bridge
