#include "runtime/device_kernels.h"

#include "support/error.h"

namespace cxxinductor::runtime {

DeviceKernels::DeviceKernels(std::map<Device, std::shared_ptr<KernelProvider>> providers) : providers_(std::move(providers)) {}

void DeviceKernels::prepare(const plan::Plan& plan, const InterruptCheck& interrupted) {
  for (const plan::Kernel& kernel : plan.kernels) {
    const auto found = providers_.find(kernel.device);
    CXXI_CHECK(found != providers_.end(), "kernel {} runs on {}, which has no provider of kernels", kernel.name, to_string(kernel.device));
    by_kernel_.push_back(found->second.get());
  }
  for (const auto& [device, provider] : providers_) provider->prepare(plan, interrupted);
}

KernelProvider& DeviceKernels::provider_of(plan::KernelId kernel) const {
  CXXI_CHECK(kernel.index() < by_kernel_.size(), "kernel {} was not prepared", kernel.index());
  return *by_kernel_[kernel.index()];
}

const LoadedKernel& DeviceKernels::get(plan::KernelId kernel, plan::Variant variant) { return provider_of(kernel).get(kernel, variant); }

const LoadedKernel* DeviceKernels::find(plan::KernelId kernel, plan::Variant variant) { return provider_of(kernel).find(kernel, variant); }

void DeviceKernels::raise_failed_checks() const {
  for (const auto& [device, provider] : providers_) provider->raise_failed_checks();
}

uint64_t DeviceKernels::loads() const {
  uint64_t all = 0;
  for (const auto& [device, provider] : providers_) all += provider->loads();
  return all;
}

GraphDevice* DeviceKernels::graphs(Device device) {
  const auto found = providers_.find(device);
  return found == providers_.end() ? nullptr : found->second->graphs(device);
}

}  // namespace cxxinductor::runtime
