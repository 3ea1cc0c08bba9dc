// NVIDIA's GPUs as a target: the driver, and NVRTC.
#pragma once

#include <atomic>
#include <map>
#include <memory>

#include "targets/cuda/driver.h"
#include "targets/cuda/node_updates.h"
#include "targets/cuda/nvrtc_source.h"
#include "targets/target_runtime.h"

namespace cxxinductor::targets {

class CudaRuntime final : public TargetRuntime {
 public:
  explicit CudaRuntime(Surroundings surroundings) : surroundings_(std::move(surroundings)) {}

  Target describe(int index) override;
  std::optional<Target> describe(int index, std::string_view arch) override;
  std::optional<Target> target_of_arch(std::string_view arch, std::optional<int> multiprocessors) override;
  std::string_view known_archs() const override { return "sm_80, sm_90"; }

  std::shared_ptr<runtime::KernelProvider> make_provider(Device device, const Target& target, const CompileResources& resources,
                                                         const std::optional<std::string>& source, const runtime::PackagedCode& packaged) override;
  runtime::CodeByHash compile_for_package(const plan::Plan& plan, Device device, const Target& target, const CompileResources& resources) override;
  void start_compiler(const Target& target, const CompileResources& resources) override;
  bool has_compiler(const CompileResources& resources) override;

  void* make_stream(int index) override;
  bool is_recording(void* stream) const override;

 private:
  CudaDriver& driver();
  NvrtcSource& compiler(const Options& options);
  NodeUpdateKernels* node_updates(int index, NvrtcSource& nvrtc, runtime::CompilePool& pool, runtime::DiskCache* cache);

  const Surroundings surroundings_;
  std::unique_ptr<CudaDriver> driver_;                             // guarded by ForkLock::Services
  std::atomic<const CudaDriver*> opened_driver_ = nullptr;         // the same one, for calls, which take no lock
  std::map<std::string, std::unique_ptr<NvrtcSource>> compilers_;  // by option nvrtc; guarded by ForkLock::Services
  std::map<int, Target> targets_;                                  // guarded by ForkLock::Targets
  // By device, once asked for; null while they are compiled, and where they cannot be. Guarded by ForkLock::Targets.
  std::map<int, std::unique_ptr<NodeUpdateKernels>> node_updates_;
};

}  // namespace cxxinductor::targets
