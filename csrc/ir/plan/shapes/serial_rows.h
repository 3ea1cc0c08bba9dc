// A block executes rows one after the other and adds up across them. Words of ir/plan/mapping.h.
#pragma once

#include "ir/plan/shapes/shape.h"

namespace cxxinductor::plan {

// Persistent rows of which a block executes those of one point of `space`, the points of `serial`, one after the other: rows_per_block at a
// time, t / threads_per_row being the first. Reductions over the serial variable give a value for each element of the row: every thread
// adds up those of its groups, and the threads of a block that hold the same groups join at the end. grid_x = points of space
struct SerialRows {
  VarId serial;
  int threads_per_row = 1, rows_per_block = 1, items_per_thread = 1;

  static constexpr std::string_view keyword = "serial_rows";
  static constexpr bool simt = true;
  static constexpr ShapeTraits traits{.arrangement = Arrangement::Rows, .any_size = false};
  static constexpr auto fields =
      std::tuple{Field{"serial", &SerialRows::serial}, Field{"threads_per_row", &SerialRows::threads_per_row, 1, most_block_threads, true},
                 Field{"rows_per_block", &SerialRows::rows_per_block, 1, most_block_threads}, Field{"items_per_thread", &SerialRows::items_per_thread}};

  static constexpr bool persistent = true;
  int threads(int) const { return threads_per_row * rows_per_block; }
  int unrolled_groups() const { return items_per_thread; }
  int groups_of_thread(int) const { return items_per_thread; }
  sym::Expr units(const Mapping& mapping, const loops::Region& region) const;
  bool has_dead_rows(const Kernel& kernel) const;
  int64_t dynamic_shared_bytes(const Kernel& kernel) const;
  void verify(const Kernel& kernel, const Report& report) const;
};

}  // namespace cxxinductor::plan
