#include "torch_bridge/import_targets.h"

#include <algorithm>

#include "ir/device_types.h"
#include "torch_bridge/providers.h"

namespace cxxinductor::torch_bridge {
namespace {

void add_devices(const model::CallGraph& calls, std::set<Device>& devices) {
  for (const model::CallValueInfo& value : calls.values)
    if (value.kind == model::CallValueInfo::Kind::Tensor) devices.insert(value.device);
  for (const auto& [name, subgraph] : calls.subgraphs) add_devices(*subgraph, devices);
}

void add_target(frontend::ImportEnvironment& environment, Device device, const Target& target) {
  if (has_streams(device))
    environment.gpus.emplace(device, target);
  else
    environment.simt_on_host = is_simt(target);
}

}  // namespace

std::set<Device> devices_of(const model::CallGraph& calls) {
  std::set<Device> devices;
  add_devices(calls, devices);
  if (devices.empty()) devices.insert(Device());
  return devices;
}

frontend::ImportEnvironment import_environment(const Options& options, bool deterministic) {
  return {.deterministic = deterministic, .any_order = !options.eager_numerics()};
}

void add_targets(frontend::ImportEnvironment& environment, const std::set<Device>& devices, const Options& options) {
  for (Device device : devices) add_target(environment, device, target_for(device, options));
}

void add_targets(frontend::ImportEnvironment& environment, const std::set<Device>& devices, const Targets& targets) {
  const std::vector<Device> known = targets.devices();
  for (Device device : devices)
    if (has_streams(device) || std::ranges::find(known, device) != known.end()) add_target(environment, device, targets.of(device));
}

}  // namespace cxxinductor::torch_bridge
