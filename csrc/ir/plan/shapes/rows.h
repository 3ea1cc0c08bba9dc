// Several threads share a row that lies along memory. Words of ir/plan/mapping.h.
#pragma once

#include <algorithm>

#include "ir/plan/shapes/shape.h"

namespace cxxinductor::plan {

// Row = b * rows_per_block + t / threads_per_row; lane = t % threads_per_row takes the groups lane + k * threads_per_row of the row.
// persistent: k < items_per_thread, which holds the longest row, and values with MemorySpace::Persistent survive from row loop to row loop;
// other values are computed again by each row loop that lists them. Otherwise in_flight groups are loaded at a time.
// Rows past the end still meet barriers and shuffles. threads_per_row may exceed the warp. grid_x = ceil_div(rows, rows_per_block)
struct Rows {
  int threads_per_row = 1, rows_per_block = 1, items_per_thread = 1, in_flight = 1;
  bool persistent = false;

  static constexpr std::string_view keyword = "rows";
  static constexpr bool simt = true;
  static constexpr ShapeTraits traits{.arrangement = Arrangement::Rows};
  static constexpr auto fields = std::tuple{
      Field{"threads_per_row", &Rows::threads_per_row, 1, most_block_threads, true}, Field{"rows_per_block", &Rows::rows_per_block, 1, most_block_threads},
      Field{"items_per_thread", &Rows::items_per_thread}, Field{"in_flight", &Rows::in_flight}, Field{"persistent", &Rows::persistent}};

  int threads(int) const { return threads_per_row * rows_per_block; }
  int unrolled_groups() const { return std::max(in_flight, items_per_thread); }
  int groups_of_thread(int) const { return persistent ? items_per_thread : 0; }
  sym::Expr units(const Mapping& mapping, const loops::Region& region) const;
  bool has_dead_rows(const Kernel& kernel) const;
  sym::Expr updates_of_state(const Mapping& mapping, const loops::Region& region) const;
};

}  // namespace cxxinductor::plan
