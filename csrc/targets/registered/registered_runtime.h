// A target that a user registered (cxxinductor/target.h), for the host's memory: its figures as a Target, its functions as kernels.
#pragma once

#include <cxxinductor/target.h>

#include "targets/target_runtime.h"

namespace cxxinductor::targets {

// UserError for a library that does not open, has no such function, or was built against another header.
RegisteredTarget open_target_library(const std::string& path);

class RegisteredRuntime final : public TargetRuntime {
 public:
  // UserError where the target is not valid.
  explicit RegisteredRuntime(RegisteredTarget target);
  const RegisteredTarget& target() const { return target_; }
  // The declared options with the values of a text "name=value, ...". UserError for others.
  TargetOptions options_of(const std::string& text) const;

  Target describe(int index) override;
  std::optional<Target> describe(int index, std::string_view arch) override;
  std::optional<Target> target_of_arch(std::string_view arch, std::optional<int> multiprocessors) override;
  std::string_view known_archs() const override { return target_.version; }
  std::shared_ptr<runtime::KernelProvider> make_provider(Device device, const Target& target, const CompileResources& resources,
                                                         const std::optional<std::string>& source, const runtime::PackagedCode& packaged) override;
  runtime::CodeByHash compile_for_package(const plan::Plan& plan, Device device, const Target& target, const CompileResources& resources) override;
  bool has_compiler(const CompileResources&) override { return true; }

 private:
  RegisteredTarget target_;
};

}  // namespace cxxinductor::targets
