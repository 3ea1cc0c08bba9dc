// The table that a CUDA kernel with Kernel::max_grouped > 1 takes as its argument: for each of its parameters the addresses
// (by-value ones: the values), then for each symbol the values (8 bytes per entry,
// Kernel::max_grouped entries each), then the number of each launch's first block (4 bytes per entry; in unused entries the
// largest number). Generated code declares the table, the runtime fills it, the scheduler computes how many launches fit.
#pragma once

#include <cstddef>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

inline constexpr size_t max_grouped_bytes = 4080;  // all devices pass 4 KB of arguments; a record of checks may follow

struct GroupedLaunchLayout {
  size_t columns = 0;  // of 8 bytes: parameters, then symbols
  size_t entries = 0;

  std::vector<size_t> value_bytes;  // by parameter: of one that goes by value, else 0

  explicit GroupedLaunchLayout(const Kernel& kernel) : columns(kernel.params.size() + kernel.symbols.size()), entries(static_cast<size_t>(kernel.max_grouped)) {
    for (const Param& param : kernel.params) value_bytes.push_back(param.by_value ? static_cast<size_t>(byte_size(param.dtype)) : 0);
  }
  size_t at(size_t column, size_t entry) const { return (column * entries + entry) * 8; }
  size_t first_block(size_t entry) const { return columns * entries * 8 + entry * 4; }
  size_t bytes() const { return (first_block(entries) + 7) / 8 * 8; }
};

// Launches that one table of this kernel's arguments can hold.
inline size_t grouped_capacity(const Kernel& kernel) { return max_grouped_bytes / ((kernel.params.size() + kernel.symbols.size()) * 8 + 4); }

}  // namespace cxxinductor::plan
