#include <cxxinductor/device.h>

#include "support/options.h"
#include "torch_bridge/device/registration.h"
#include "torch_bridge/process_check.h"

namespace cxxinductor {

void register_device(const std::string& name, std::optional<c10::DeviceType> backing, const Options& options) {
  torch_bridge::check_process();
  check_options(options);
  torch_bridge::register_lazy_device(name, backing, options);
}

void mark_step() { torch_bridge::lazy_device().flush(); }
DeviceCounters device_counters() { return torch_bridge::lazy_device().counters(); }
std::string explain_device() { return torch_bridge::lazy_device().describe(); }

}  // namespace cxxinductor
