#include "targets/registry.h"

#include "support/error.h"
#include "support/fork_locks.h"
#include "targets/cpu/cpu_runtime.h"
#include "targets/cuda/cuda_runtime.h"
#include "targets/registered/registered_runtime.h"

namespace cxxinductor::targets {

Registry::Registry(const Surroundings& surroundings) : runtimes_{std::make_unique<CpuRuntime>(surroundings), std::make_unique<CudaRuntime>(surroundings)} {}
Registry::Registry(Registry&&) noexcept = default;
Registry::~Registry() = default;

RegisteredRuntime* Registry::find(const std::string& name) const {
  const ForkGuard guard(ForkLock::Targets);
  const auto found = registered_.find(name);
  return found == registered_.end() ? nullptr : found->second.get();
}

TargetRuntime& Registry::of(const Target& target) const {
  RegisteredRuntime* const found = find(target.name);
  return found ? *found : of(target.device);
}

void Registry::add(const RegisteredTarget& target) {
  auto made = std::make_unique<RegisteredRuntime>(target);
  std::string version;
  {
    const ForkGuard guard(ForkLock::Targets);
    const auto [found, is_new] = registered_.try_emplace(target.name, std::move(made));
    version = found->second->target().version;
  }
  if (version != target.version)
    throw_user_error("register_target({}): expected the version that is registered, '{}', found '{}'", target.name, version, target.version);
}

RegisteredRuntime& Registry::registered(const std::string& name) const {
  if (RegisteredRuntime* found = find(name)) return *found;
  std::string known;
  {
    const ForkGuard guard(ForkLock::Targets);
    for (const auto& [other, runtime] : registered_) known += (known.empty() ? "" : ", ") + other;
  }
  throw_user_error("option target: expected a registered target ({}), found '{}'", known.empty() ? "none is, see load_target" : known, name);
}

}  // namespace cxxinductor::targets
