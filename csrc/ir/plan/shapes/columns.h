// Reductions across memory: neighbouring columns side by side. Words of ir/plan/mapping.h.
#pragma once

#include "ir/plan/shapes/shape.h"

namespace cxxinductor::plan {

// The last variable of `space` is the contiguous one in memory and `row` lies across it. Block = strip;
// c = t % (columns_per_block / vector_width) is the thread's group in the strip and y = t / (columns_per_block / vector_width)
// < threads_per_row. It takes points y + k * threads_per_row of the row-major `row`, in_flight of them at a time. grid_x = strips
struct Columns {
  int threads_per_row = 1;  // that share a column
  int columns_per_block = 32, in_flight = 1;

  static constexpr std::string_view keyword = "columns";
  static constexpr bool simt = true;
  static constexpr ShapeTraits traits{.arrangement = Arrangement::Columns};
  static constexpr auto fields = std::tuple{Field{"threads_per_row", &Columns::threads_per_row, 1, most_block_threads, true},
                                            Field{"columns_per_block", &Columns::columns_per_block, 1, 1 << 20}, Field{"in_flight", &Columns::in_flight}};

  int threads(int vector_width) const { return threads_per_row * (columns_per_block / vector_width); }
  int unrolled_groups() const { return in_flight; }
  sym::Expr units(const Mapping& mapping, const loops::Region& region) const;
  bool has_dead_rows(const Kernel& kernel) const;
  sym::Expr updates_of_state(const Mapping& mapping, const loops::Region& region) const;
  void verify(const Kernel& kernel, const Report& report) const;
};

}  // namespace cxxinductor::plan
