// Whether a write to one tensor could be seen through another.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <span>

namespace cxxinductor::torch_bridge {

// One of the tensors at these positions has a storage in common with another value, be it other parts of it.
bool any_share_memory(std::span<const c10::IValue> values, std::span<const uint32_t> positions);

}  // namespace cxxinductor::torch_bridge
