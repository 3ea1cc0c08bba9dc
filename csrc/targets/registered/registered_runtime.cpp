#include "targets/registered/registered_runtime.h"

#include <dlfcn.h>

#include <algorithm>
#include <set>

#include "codegen/cuda/emit.h"
#include "ir/device_types.h"
#include "ir/plan/mapping.h"
#include "support/error.h"
#include "support/options.h"
#include "support/utf8.h"
#include "targets/registered/registered_kernels.h"

namespace cxxinductor::targets {
namespace {

constexpr const char* entry_point = "cxxinductor_target";

bool is_name(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && is_letter(text.front()) && std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// No commas and no ends of lines, which separate options and parts of keys.
bool is_value(std::string_view text) { return text.find_first_of(",\n") == text.npos; }

void check_name(const RegisteredTarget& target) {
  if (!is_name(target.name)) throw_user_error("register_target: expected a name of letters, digits and '_', found '{}'", target.name);
  for (const DeviceTypeInfo& row : device_types())
    if (row.text == target.name) throw_user_error("register_target: expected a name that no device has, found '{}'", target.name);
  if (target.version.empty() || target.version.find('\n') != target.version.npos)
    throw_user_error("register_target({}): expected a version of one line, found '{}'", target.name, target.version);
}

void check_figures(const RegisteredTarget& target) {
  const TargetFigures& figures = target.figures;
  const auto check = [&](std::string_view what, auto value, auto least, auto most) {
    if (!(value >= least && value <= most)) throw_user_error("register_target({}): expected {} from {} to {}, found {}", target.name, what, least, most, value);
  };
  check("multiprocessors", figures.multiprocessors, 1, 1 << 20);
  check("shared_bytes_per_block", figures.shared_bytes_per_block, int64_t{48} << 10, int64_t{1} << 30);
  check("bytes_per_second", figures.bytes_per_second, 1.0, 1e18);
  check("instructions_per_second", figures.instructions_per_second, 1.0, 1e18);
  check("launch_seconds", figures.launch_seconds, 0.0, 1.0);
}

void check_options(const RegisteredTarget& target) {
  std::set<std::string> names;
  for (const TargetOption& option : target.options)
    if (!is_name(option.name) || !is_value(option.value) || option.doc.empty() || !names.insert(option.name).second)
      throw_user_error("register_target({}): expected options with names of their own, values without commas and a doc, found '{}'", target.name, option.name);
}

}  // namespace

RegisteredTarget open_target_library(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* message = dlerror();
    throw_user_error("load_target: {} does not open: {}", path, message ? message : "no reason");
  }
  const auto make = reinterpret_cast<const RegisteredTarget* (*)()>(dlsym(library, entry_point));
  if (!make) throw_user_error("load_target: expected a function {} in {}", entry_point, path);
  const RegisteredTarget* target = nullptr;
  try {
    target = make();
  } catch (const std::exception& error) {
    throw_user_error("load_target: {} of {}: {}", entry_point, path, as_utf8(error.what()));
  }
  if (!target || target->interface != target_interface)  // of another one, nothing but its first member can be read
    throw_user_error("load_target: expected a target for interface {} in {}, found {}: build the library again", target_interface, path,
                     target ? fmt::format("{}", target->interface) : "none");
  return *target;
}

RegisteredRuntime::RegisteredRuntime(RegisteredTarget target) : target_(std::move(target)) {
  check_name(target_);
  check_figures(target_);
  check_options(target_);
  if (!target_.compile || !target_.load || !target_.unload || !target_.launch)
    throw_user_error("register_target({}): expected functions compile, load, unload and launch", target_.name);
}

TargetOptions RegisteredRuntime::options_of(const std::string& text) const {
  TargetOptions options;
  std::string known;
  for (const TargetOption& option : target_.options) {
    options[option.name] = option.value;
    known += (known.empty() ? "" : ", ") + option.name;
  }
  for (const std::string& item : list_items(text)) {
    const size_t sign = item.find('=');
    const auto found = options.find(item.substr(0, sign));
    if (sign == item.npos || found == options.end())
      throw_user_error("option target_options: expected name=value with options of {} ({}), found '{}'", target_.name, known.empty() ? "it has none" : known,
                       item);
    found->second = item.substr(sign + 1);
  }
  return options;
}

Target RegisteredRuntime::describe(int) {
  const TargetFigures& figures = target_.figures;
  Target target;
  target.name = target_.name;
  target.device = Device().type;  // the host
  target.arch = target_.version;
  // As the text for threads has it.
  target.vector_bytes = 16;
  target.warp = 32;
  target.max_threads_per_block = plan::most_block_threads;
  target.multiprocessors = figures.multiprocessors;
  target.machine.shared_bytes_per_block = figures.shared_bytes_per_block;
  target.machine.bytes = target.machine.bytes_alone = target.machine.l2_bytes = figures.bytes_per_second;
  target.machine.instructions = figures.instructions_per_second;
  target.machine.launch = figures.launch_seconds;
  target.machine.launch_bytes = figures.launch_seconds * figures.bytes_per_second * figures.multiprocessors;
  return target;
}

std::optional<Target> RegisteredRuntime::describe(int index, std::string_view arch) {
  return arch == target_.version ? std::optional(describe(index)) : std::nullopt;
}

std::optional<Target> RegisteredRuntime::target_of_arch(std::string_view arch, std::optional<int>) { return describe(0, arch); }

std::shared_ptr<runtime::KernelProvider> RegisteredRuntime::make_provider(Device device, const Target&, const CompileResources& resources,
                                                                          const std::optional<std::string>& source, const runtime::PackagedCode&) {
  const auto emit = [source](const plan::Kernel& kernel, plan::Variant variant) {
    return source ? *source : codegen::emit_cuda({&kernel}, variant, OriginTable(), codegen::Templates::Included);
  };
  return std::make_shared<RegisteredKernelProvider>(target_, options_of(resources.options.target_options), device, emit, resources.pool, resources.cache);
}

runtime::CodeByHash RegisteredRuntime::compile_for_package(const plan::Plan&, Device, const Target&, const CompileResources&) {
  throw_user_error("packages have no code of registered targets, found the target {}", target_.name);
}

}  // namespace cxxinductor::targets
