// Fills the argument table of a batched kernel (ir/plan/batch.h) from the arguments of its launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/plan/batch.h"
#include "runtime/executable.h"

namespace cxxinductor::runtime {

// Takes items from the front while the table and a grid of 2^31 - 1 blocks have room for them; `table` has
// layout.bytes(), 8-byte aligned. What is written beyond the taken items keeps the search for a block's item inside them.
struct FilledTable {
  size_t taken = 0;
  int64_t blocks = 0;
};
FilledTable fill_batch_table(const plan::BatchLayout& layout, std::span<const BatchItem> items, std::byte* table);

}  // namespace cxxinductor::runtime
