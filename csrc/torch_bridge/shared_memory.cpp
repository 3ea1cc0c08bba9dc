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

bool any_share_memory(std::span<const c10::IValue> values, std::span<const uint32_t> positions) {
  if (positions.empty()) return false;
  std::vector<const void*> memories;
  for (const c10::IValue& value : values)
    if (const void* memory = memory_of(value)) memories.push_back(memory);
  std::sort(memories.begin(), memories.end());
  return std::any_of(positions.begin(), positions.end(), [&](uint32_t position) {
    const auto [first, last] = std::equal_range(memories.begin(), memories.end(), memory_of(values[position]));
    return last - first > 1;
  });
}

}  // namespace cxxinductor::torch_bridge
