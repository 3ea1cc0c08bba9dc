// Points in groups. Words of ir/plan/mapping.h.
#pragma once

#include "ir/plan/shapes/shape.h"

namespace cxxinductor::plan {

// Every point of `space` once. No reductions. Thread t of block b takes the groups (b * unroll + u) * block_threads + t, u < unroll.
// grid_x = ceil_div(groups, block_threads * unroll)
struct Pointwise {
  int block_threads = 256;
  int unroll = 1;

  static constexpr std::string_view keyword = "pointwise";
  static constexpr bool simt = true;
  static constexpr ShapeTraits traits{.arrangement = Arrangement::Points};
  static constexpr auto fields = std::tuple{Field{"block_threads", &Pointwise::block_threads, 1, most_block_threads}, Field{"unroll", &Pointwise::unroll}};

  int threads(int) const { return block_threads; }
  int unrolled_groups() const { return unroll; }
  sym::Expr units(const Mapping& mapping, const loops::Region& region) const;
  bool has_dead_rows(const Kernel&) const { return false; }
};

}  // namespace cxxinductor::plan
