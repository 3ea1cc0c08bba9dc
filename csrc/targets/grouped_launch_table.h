// Fills the argument table of a kernel of grouped launches (ir/plan/grouped_launch.h) from the arguments of its launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/plan/grouped_launch.h"
#include "runtime/executable.h"

namespace cxxinductor::targets {

// Takes items from the front while the table and a grid of 2^31 - 1 blocks have room for them; `table` has
// layout.bytes(), 8-byte aligned. What is written beyond the taken items keeps the search for a block's item inside them.
struct FilledTable {
  size_t taken = 0;
  int64_t blocks = 0;
};
FilledTable fill_grouped_table(const plan::GroupedLaunchLayout& layout, std::span<const runtime::LaunchArgs> items, std::byte* table);

}  // namespace cxxinductor::targets
