#include "targets/cpu/cpu_runtime.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "codegen/cpu/emit.h"
#include "support/error.h"
#include "support/files.h"
#include "targets/cpu/cpu_kernels.h"

namespace cxxinductor::targets {
namespace {

// Levels of the instruction set, from the one that all have to the widest.
constexpr std::array<std::string_view, 4> levels{"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

std::optional<size_t> level_of(std::string_view arch) {
  const auto found = std::ranges::find(levels, arch);
  return found == levels.end() ? std::nullopt : std::optional<size_t>(found - levels.begin());
}

// The widest that the CPU and the operating system support.
std::string_view own_level() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return levels[3];
  if (__builtin_cpu_supports("x86-64-v3")) return levels[2];
  if (__builtin_cpu_supports("x86-64-v2")) return levels[1];
  return levels[0];
}

CpuEmitter emitter(const Target& target, const std::optional<std::string>& source) {
  return [target, source](const std::vector<const plan::Kernel*>& kernels) {
    return CpuUnitSource{source ? *source : codegen::emit_cpu(kernels, target, OriginTable()), codegen::cpu_math_symbols(kernels, target)};
  };
}

}  // namespace

CpuRuntime::CpuRuntime(const Surroundings& surroundings) : threads_(surroundings.threads), compiler_(HostCompilerConfig{{}, temporary_folder()}) {}

Target CpuRuntime::describe(int) { return cpu_target(std::string(own_level()), threads_()); }

std::optional<Target> CpuRuntime::describe(int, std::string_view arch) {
  const auto level = level_of(arch);
  return level && *level <= level_of(own_level()) ? target_of_arch(arch, std::nullopt) : std::nullopt;
}

std::optional<Target> CpuRuntime::target_of_arch(std::string_view arch, std::optional<int> multiprocessors) {
  return level_of(arch) ? std::optional(cpu_target(std::string(arch), multiprocessors.value_or(threads_()))) : std::nullopt;
}

std::shared_ptr<runtime::KernelProvider> CpuRuntime::make_provider(Device, const Target& target, const CompileResources& resources,
                                                                   const std::optional<std::string>& source, const runtime::PackagedCode& packaged) {
  return std::make_shared<CpuKernelProvider>(target, emitter(target, source), compiler_, resources.pool, resources.cache, resources.host,
                                             std::chrono::seconds(std::max<int64_t>(resources.options.compile_timeout, 1)), packaged);
}

runtime::CodeByHash CpuRuntime::compile_for_package(const plan::Plan& plan, Device, const Target& target, const CompileResources& resources) {
  const CpuKernelProvider provider(target, emitter(target, {}), compiler_, resources.pool, resources.cache, resources.host,
                                   std::chrono::seconds(std::max<int64_t>(resources.options.compile_timeout, 1)));
  return provider.compile_for_package(plan);
}

bool CpuRuntime::has_compiler(const CompileResources& resources) {
  try {
    compiler_.identity({}, resources.cache);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace cxxinductor::targets
