// Kernels of a registered target: one text per kernel and variant, compiled by the user's function, cached as its code, launched by its functions.
#pragma once

#include <cxxinductor/target.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "runtime/compile_pool.h"
#include "runtime/disk_cache.h"
#include "runtime/kernels.h"

namespace cxxinductor::targets {

class RegisteredKernelProvider final : public runtime::KernelProvider {
 public:
  using Emitter = std::function<std::string(const plan::Kernel&, plan::Variant)>;

  // For the plan's kernels on the device. The references and the target must outlive the provider. cache may be null.
  RegisteredKernelProvider(const RegisteredTarget& target, TargetOptions options, Device device, Emitter emitter, runtime::CompilePool& pool,
                           runtime::DiskCache* cache);
  ~RegisteredKernelProvider() override;

  // Compiles and loads the variants that aligned inputs of ordinary size need, but no specializations. Called once, before get. The plan may go
  // away afterwards.
  void prepare(const plan::Plan& plan, const InterruptCheck& interrupted = {}) override;
  // Compiles a kernel that prepare did not foresee, on the calling thread.
  const runtime::LoadedKernel& get(plan::KernelId kernel, plan::Variant variant) override;

 private:
  class Kernel;
  using Number = std::pair<plan::KernelId, int>;  // the kernel's and its variant's

  std::string code_of(const plan::Kernel& kernel, plan::Variant variant, const InterruptCheck& interrupted, std::chrono::milliseconds patience) const;
  std::unique_ptr<Kernel> load(const plan::Kernel& kernel, const std::string& code) const;

  const RegisteredTarget& target_;
  const TargetOptions options_;
  const Device device_;
  const Emitter emitter_;
  runtime::CompilePool& pool_;
  runtime::DiskCache* const cache_;
  IdVector<plan::KernelId, plan::Kernel> kernels_;
  OriginTable origins_;
  std::map<Number, std::unique_ptr<Kernel>> loaded_;  // guarded by ForkLock::Kernels
};

}  // namespace cxxinductor::targets
