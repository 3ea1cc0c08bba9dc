#include "torch_bridge/shared_memory.h"

#include <algorithm>
#include <vector>

namespace cxxinductor::torch_bridge {

bool any_share_memory(std::span<const c10::IValue> values) {
  std::vector<const void*> storages;
  for (const c10::IValue& value : values)
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().has_storage() && value.toTensor().numel() > 0)
      storages.push_back(value.toTensor().storage().unsafeGetStorageImpl());
  std::sort(storages.begin(), storages.end());
  return std::adjacent_find(storages.begin(), storages.end()) != storages.end();
}

}  // namespace cxxinductor::torch_bridge
