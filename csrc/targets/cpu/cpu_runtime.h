// This machine's CPU as a target.
#pragma once

#include "targets/cpu/host_compiler.h"
#include "targets/target_runtime.h"

namespace cxxinductor::targets {

class CpuRuntime final : public TargetRuntime {
 public:
  explicit CpuRuntime(const Surroundings& surroundings);

  Target describe(int index) override;
  std::optional<Target> describe(int index, std::string_view arch) override;
  std::optional<Target> target_of_arch(std::string_view arch, std::optional<int> multiprocessors) override;
  std::string_view known_archs() const override { return "x86-64, x86-64-v2, x86-64-v3 or x86-64-v4"; }

  std::shared_ptr<runtime::KernelProvider> make_provider(Device device, const Target& target, const CompileResources& resources,
                                                         const std::optional<std::string>& source, const runtime::PackagedCode& packaged) override;
  runtime::CodeByHash compile_for_package(const plan::Plan& plan, Device device, const Target& target, const CompileResources& resources) override;
  bool has_compiler(const CompileResources& resources) override;

 private:
  int (*threads_)();
  HostCompiler compiler_;
};

}  // namespace cxxinductor::targets
