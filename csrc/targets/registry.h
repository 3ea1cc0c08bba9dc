// The targets of this build, by kind of device. Making it opens and asks nothing: each target does so when it is first needed.
#pragma once

#include <array>
#include <memory>

#include "targets/target_runtime.h"

namespace cxxinductor::targets {

class Registry {
 public:
  explicit Registry(const Surroundings& surroundings);
  TargetRuntime& of(DeviceType type) const { return *runtimes_[static_cast<size_t>(type)]; }

 private:
  std::array<std::unique_ptr<TargetRuntime>, 2> runtimes_;  // in the order of DeviceType
};

}  // namespace cxxinductor::targets
