// Whether a write to one tensor could be seen through another.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <span>

namespace cxxinductor::torch_bridge {

// Two of the tensors have a storage in common, be it other parts of it.
bool any_share_memory(std::span<const c10::IValue> values);
// The tensor at this position and another one have.
bool shares_memory(std::span<const c10::IValue> values, size_t position);

}  // namespace cxxinductor::torch_bridge
