#include "torch_bridge/package_builds.h"

#include <ATen/Context.h>
#include <cxxinductor/cxxinductor.h>

#include <algorithm>
#include <utility>

#include "readers/pt2/printable.h"
#include "support/error.h"
#include "support/options.h"
#include "torch_bridge/compile_settings.h"
#include "torch_bridge/providers.h"

namespace cxxinductor::torch_bridge {
namespace {

using package_file::Build;
using package_file::BuiltPlan;
using package_file::Container;
using package_file::SectionKind;

// The targets that run the build here; none where the machine does not.
std::optional<Targets> targets_here(const Build& build) {
  Targets targets;
  for (const auto& [device, arch] : build.archs) {
    auto target = find_target(device, arch);
    if (!target) return std::nullopt;
    targets.add(device, std::move(*target));
  }
  return targets;
}

// Moves what was made into the sections of a plan of this name.
BuiltPlan add_plan(BuiltPlans& plans, const std::string& name, PlanForPackage made) {
  for (driver::Report::KernelSource& source : made.sources)
    plans.sources.emplace(fmt::format("{} {}", name, source.name).substr(0, package_file::longest_name), std::move(source.text));
  plans.plans.emplace(name, std::move(made.plan));
  plans.code.merge(made.code);
  return {name, made.needs_calls};
}

// One architecture for each kind of device, in all combinations; that of the last kind changes least often.
std::vector<std::map<DeviceType, std::string>> combinations(const Archs& archs) {
  std::vector<std::map<DeviceType, std::string>> all{{}};
  for (auto kind = archs.rbegin(); kind != archs.rend(); ++kind) {
    std::vector<std::map<DeviceType, std::string>> longer;
    for (const auto& begun : all)
      for (const std::string& arch : kind->second) {
        longer.push_back(begun);
        longer.back().emplace(kind->first, arch);
      }
    all = std::move(longer);
  }
  return all;
}

std::string archs_text(const Build& build) {
  std::string text;
  for (const auto& [device, arch] : build.archs) text += (text.empty() ? "" : " and ") + readers::printable(arch);
  return text;
}

}  // namespace

Archs choose_archs(const std::set<Device>& devices, const std::vector<std::string>& wanted) {
  Archs archs;
  // An unknown one is an error for models on other devices too.
  for (const std::string& arch : wanted) archs[device_type_of_arch(arch)].push_back(arch);
  for (auto& [type, list] : archs) std::ranges::sort(list);
  std::erase_if(archs, [&](const auto& entry) { return std::ranges::none_of(devices, [&](Device device) { return device.type == entry.first; }); });
  std::set<DeviceType> named;
  for (const auto& [type, list] : archs) named.insert(type);
  for (Device device : devices) {
    if (named.contains(device.type)) continue;
    try {
      archs[device.type].push_back(target_for(device, Options()).arch);
    } catch (const UserError& error) {
      throw_user_error("the model is on {}, which this machine cannot describe: name its architecture, as {} (archs, --arch): {}", to_string(device),
                       known_archs(device.type), error.what());
    }
  }
  return archs;
}

void add_sections(const BuiltPlans& plans, std::vector<package_file::NewSection>& sections) {
  const auto add = [&](SectionKind kind, const std::map<std::string, std::string>& texts) {
    for (const auto& [name, text] : texts) sections.push_back({kind, name, {std::as_bytes(std::span(text))}});
  };
  add(SectionKind::Plan, plans.plans);
  add(SectionKind::Source, plans.sources);
  add(SectionKind::Code, plans.code);
}

std::vector<Build> add_builds(BuiltPlans& plans, const std::set<Device>& devices, const Archs& archs, std::string_view name,
                              const std::function<std::vector<PlanForPackage>(const Targets& targets)>& make) {
  std::vector<Build> builds;
  for (const auto& chosen : combinations(archs)) {
    Build& build = builds.emplace_back();
    std::string plan(name);
    Targets targets;
    for (auto device = devices.rbegin(); device != devices.rend(); ++device) {  // GPUs first
      const std::string& arch = chosen.at(device->type);
      build.archs.emplace_back(*device, arch);
      targets.add(*device, target_of_arch(*device, arch));
      if (plan.find(arch) == std::string::npos) plan += (plan.empty() ? "" : " ") + arch;
    }
    std::vector<PlanForPackage> made = make(targets);
    build.deterministic = at::globalContext().deterministicAlgorithms();
    build.main = add_plan(plans, plan, std::move(made.front()));
    for (size_t i = 1; i < made.size(); ++i) build.subgraphs.push_back(add_plan(plans, fmt::format("{} @{}", plan, i - 1), std::move(made[i])));
  }
  return builds;
}

std::string code_distrust(const Container& container, const std::string& library_version, const Options& options) {
  if (!options.trust) {
    if (!container.signer()) return "it is not signed, and option trust is off";
    const auto is_signer = [&](const std::string& key) { return package_file::parse_public_key(key, "option trusted_keys") == *container.signer(); };
    if (!std::ranges::any_of(list_items(options.trusted_keys), is_signer))
      return fmt::format("it is signed with key {}, which option trusted_keys does not list", package_file::to_hex(*container.signer()));
  }
  if (library_version != version()) return fmt::format("it was made by version {}, and this is {}", library_version, version());
  if (options.tier == "aten" || options.check != "off" || !options.dump.empty()) return "options tier, check and dump compile models from their calls";
  return {};
}

std::optional<PackagedPlans> choose_plans(const std::shared_ptr<const OpenPackage>& opened, std::span<const Build> builds, std::string& note) {
  const auto settings = CompileSettings::current();
  const Build* chosen = nullptr;
  Targets targets;
  std::string archs;
  for (const Build& build : builds) {
    archs += (archs.empty() ? "" : ", ") + archs_text(build) + (build.deterministic ? " (deterministic)" : "");
    if ((settings.deterministic && !build.deterministic) || settings.default_dtype != c10::ScalarType::Float) continue;
    auto found = targets_here(build);
    if (!found) continue;
    targets = std::move(*found);
    chosen = &build;
  }
  if (!chosen) {
    note = fmt::format("it has code for {}, none of which this machine and PyTorch's settings take", archs.empty() ? "nothing" : archs);
    return std::nullopt;
  }
  const auto code = [opened](const std::string& hash) -> std::optional<std::string> {
    const package_file::Section* section = opened->container.find(SectionKind::Code, hash);
    if (!section) return std::nullopt;
    return opened->container.read(*section);
  };
  const auto read = [&](const BuiltPlan& built) {
    return PackagedPlan{opened->container.read(opened->container.get(SectionKind::Plan, built.plan)), targets, code, built.needs_calls};
  };
  PackagedPlans plans{read(chosen->main), {}};
  for (const BuiltPlan& subgraph : chosen->subgraphs) plans.subgraphs.push_back(read(subgraph));
  return plans;
}

}  // namespace cxxinductor::torch_bridge
