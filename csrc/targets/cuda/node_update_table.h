// The argument of update_nodes (kernels_templates/cuda/update_nodes.cuh), as the host fills it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cxxinductor::targets {

struct NodeUpdateTable {
  static constexpr size_t words_at_most = 1300, ranges_at_most = 512;
  const volatile uint64_t* begins = nullptr;
  volatile uint32_t* done = nullptr;
  uint32_t ring = 0, slots = 0, ranges = 0, words = 0;
  bool is_last = false;
  void* nodes[words_at_most] = {};
  int64_t offsets[words_at_most] = {};
  uint16_t arguments[words_at_most] = {};
  uint16_t range_of[words_at_most] = {};
};
static_assert(sizeof(NodeUpdateTable) == 26040, "the kernel's struct is as large");  // at most 32764: a kernel's arguments

}  // namespace cxxinductor::targets
