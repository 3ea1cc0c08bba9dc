#include "targets/grouped_launch_table.h"

#include <algorithm>
#include <cstring>

#include "support/error.h"

namespace cxxinductor::targets {

FilledTable fill_grouped_table(const plan::GroupedLaunchLayout& layout, std::span<const runtime::LaunchArgs> items, std::byte* table) {
  FilledTable filled;
  std::memset(table, 0, layout.bytes());  // recordings of the same launches are compared byte by byte
  const auto put_first_block = [&](size_t entry, uint32_t block) { std::memcpy(table + layout.first_block(entry), &block, sizeof block); };
  const size_t most = std::min(items.size(), layout.entries);
  for (; filled.taken < most; ++filled.taken) {
    const runtime::LaunchArgs& item = items[filled.taken];
    CXXI_CHECK(item.buffers.size() + item.symbols.size() == layout.columns, "a launch of {} buffers and {} symbols", item.buffers.size(), item.symbols.size());
    if (filled.taken > 0 && filled.blocks + item.grid.x > INT32_MAX) break;
    size_t column = 0;
    for (void* const& buffer : item.buffers) {
      std::byte* const to = table + layout.at(column, filled.taken);
      if (const size_t bytes = layout.value_bytes[column++]; bytes > 0)
        std::memcpy(to, buffer, bytes);
      else
        std::memcpy(to, &buffer, sizeof buffer);
    }
    for (int64_t symbol : item.symbols) std::memcpy(table + layout.at(column++, filled.taken), &symbol, sizeof symbol);
    put_first_block(filled.taken, static_cast<uint32_t>(filled.blocks));
    filled.blocks += item.grid.x;
  }
  for (size_t entry = filled.taken; entry < layout.entries; ++entry) put_first_block(entry, UINT32_MAX);
  return filled;
}

}  // namespace cxxinductor::targets
