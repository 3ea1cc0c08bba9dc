#include "torch_bridge/shared_memory.h"

#include <algorithm>
#include <vector>

namespace cxxinductor::torch_bridge {

namespace {

// Null where there is no element.
const void* memory_of(const c10::IValue& value) {
  if (!value.isTensor()) return nullptr;
  const at::Tensor& tensor = value.toTensor();
  return tensor.defined() && tensor.has_storage() && tensor.numel() > 0 ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

}  // namespace

bool shares_memory(std::span<const c10::IValue> values, size_t position) {
  const void* memory = memory_of(values[position]);
  return memory != nullptr && std::count_if(values.begin(), values.end(), [&](const c10::IValue& value) { return memory_of(value) == memory; }) > 1;
}

bool any_share_memory(std::span<const c10::IValue> values) {
  std::vector<const void*> storages;
  for (const c10::IValue& value : values)
    if (const void* memory = memory_of(value)) storages.push_back(memory);
  std::sort(storages.begin(), storages.end());
  return std::adjacent_find(storages.begin(), storages.end()) != storages.end();
}

}  // namespace cxxinductor::torch_bridge
