// The targets of this build, by kind of device, and those that users registered. Making it opens and asks nothing: each target does so when it is
// first needed.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>

#include "targets/target_runtime.h"

namespace cxxinductor {
struct RegisteredTarget;
}

namespace cxxinductor::targets {

class RegisteredRuntime;

class Registry {
 public:
  explicit Registry(const Surroundings& surroundings);
  Registry(Registry&&) noexcept;
  ~Registry();

  TargetRuntime& of(DeviceType type) const { return *runtimes_[static_cast<size_t>(type)]; }
  // The one that describes the target.
  TargetRuntime& of(const Target& target) const;

  // UserError where the target is not valid, or another one has its name; again with the same version does nothing.
  void add(const RegisteredTarget& target);
  // UserError where none is registered by this name.
  RegisteredRuntime& registered(const std::string& name) const;

 private:
  RegisteredRuntime* find(const std::string& name) const;

  std::array<std::unique_ptr<TargetRuntime>, 2> runtimes_;                // in the order of DeviceType
  std::map<std::string, std::unique_ptr<RegisteredRuntime>> registered_;  // guarded by ForkLock::Targets; none is ever removed
};

}  // namespace cxxinductor::targets
