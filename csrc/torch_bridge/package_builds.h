// Plans and machine code in packages: made for several architectures, chosen and trusted when they are read back. Models in files of
// their own (api/) and regions of TorchScript modules (jit/) share this.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "package/container.h"
#include "package/manifest.h"
#include "torch_bridge/compiled_graph.h"

namespace cxxinductor::torch_bridge {

// Names of architectures for each kind of device that a model is on.
using Archs = std::map<DeviceType, std::vector<std::string>>;
// Those that were asked for by kind, from the oldest on, or the machine's. UserError for an unknown name, and where the model is on a
// device that this machine does not have and for which none was asked for.
Archs choose_archs(const std::set<Device>& devices, const std::vector<std::string>& wanted);

// What becomes sections of their own kinds.
struct BuiltPlans {
  std::map<std::string, std::string> plans, sources;
  runtime::CodeByHash code;
};
// The section pieces point into `plans`, which has to outlive them.
void add_sections(const BuiltPlans& plans, std::vector<package_file::NewSection>& sections);

// Plans of the same calls for each combination of architectures. name: before those of their plans; "": nothing. make: of the calls, then of their
// subgraphs.
std::vector<package_file::Build> add_builds(BuiltPlans& plans, const std::set<Device>& devices, const Archs& archs, std::string_view name,
                                            const std::function<std::vector<PlanForPackage>(const Targets& targets)>& make);

// Of a build, for the same machine.
struct PackagedPlans {
  PackagedPlan main;
  std::vector<PackagedPlan> subgraphs;
};

// A package that stays open for the code in it.
struct OpenPackage {
  std::shared_ptr<const void> owner;  // of the bytes
  package_file::Container container;
};
// Why the code in there is not used: nobody trusted made it, another version did, or options ask for what needs the calls. "" when it is.
std::string code_distrust(const package_file::Container& container, const std::string& library_version, const Options& options);
// The last build that this machine runs: builds are in the order of their architectures. None, and why: `note`.
std::optional<PackagedPlans> choose_plans(const std::shared_ptr<const OpenPackage>& opened, std::span<const package_file::Build> builds, std::string& note);

}  // namespace cxxinductor::torch_bridge
