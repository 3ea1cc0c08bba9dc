// Kernels of a plan over several devices: each from the provider of the device that it runs on.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "runtime/kernels.h"

namespace cxxinductor::runtime {

class DeviceKernels final : public KernelProvider {
 public:
  // One provider for each device that the plan has kernels on; a provider prepares the kernels of its device alone.
  explicit DeviceKernels(std::map<Device, std::shared_ptr<KernelProvider>> providers);

  void prepare(const plan::Plan& plan, const InterruptCheck& interrupted = {}) override;
  const LoadedKernel& get(plan::KernelId kernel, plan::Variant variant) override;
  const LoadedKernel* find(plan::KernelId kernel, plan::Variant variant) override;
  void raise_failed_checks() const override;
  uint64_t loads() const override;
  GraphDevice* graphs(Device device) override;

 private:
  KernelProvider& provider_of(plan::KernelId kernel) const;

  std::map<Device, std::shared_ptr<KernelProvider>> providers_;
  std::vector<KernelProvider*> by_kernel_;
};

}  // namespace cxxinductor::runtime
