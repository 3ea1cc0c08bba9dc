// The kernels of one executable: the provider is asked once for each kernel and variant, calls read a table.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/kernels.h"

namespace cxxinductor::runtime {

constexpr int kVariants = 4;
inline int variant_number(plan::Variant variant) { return (variant.vectorized ? 1 : 0) + (variant.index64 ? 2 : 0); }

class KernelTable {
 public:
  KernelTable(size_t kernels, std::shared_ptr<KernelProvider> provider)
      : provider_(std::move(provider)), loaded_(new std::atomic<const LoadedKernel*>[kernels * kVariants]()) {}

  const LoadedKernel& get(uint32_t kernel, plan::Variant variant) const {
    std::atomic<const LoadedKernel*>& entry = entry_of(kernel, variant);
    if (const LoadedKernel* found = entry.load(std::memory_order_acquire)) [[likely]]
      return *found;
    const LoadedKernel& found = provider_->get(plan::KernelId(kernel), variant);
    entry.store(&found, std::memory_order_release);
    return found;
  }
  // Null where another thread is still to compile it.
  const LoadedKernel* find(uint32_t kernel, plan::Variant variant) const {
    std::atomic<const LoadedKernel*>& entry = entry_of(kernel, variant);
    if (const LoadedKernel* found = entry.load(std::memory_order_acquire)) [[likely]]
      return found;
    const LoadedKernel* found = provider_->find(plan::KernelId(kernel), variant);
    if (found) entry.store(found, std::memory_order_release);
    return found;
  }
  KernelProvider& provider() const { return *provider_; }

 private:
  std::atomic<const LoadedKernel*>& entry_of(uint32_t kernel, plan::Variant variant) const {
    return loaded_[kernel * kVariants + static_cast<size_t>(variant_number(variant))];
  }

  const std::shared_ptr<KernelProvider> provider_;
  const std::unique_ptr<std::atomic<const LoadedKernel*>[]> loaded_;
};

}  // namespace cxxinductor::runtime
