// Products on tensor cores. Words of ir/plan/mapping.h.
#pragma once

#include "ir/plan/shapes/shape.h"

namespace cxxinductor::plan {

// A product on tensor cores: one sum over the one variable k of `row`, of products of two 16-bit floats (matmul.h names the parts).
// `space` ends with m and n: the left factor varies over m and k, the right one over n and k, both over any of the variables before (the
// batch). Two segments: a RowLoop with all that the sum needs, a PerRow with the epilogue.
// A block computes tile_m x tile_n sums at one point of the batch, in steps of tile_k, of which stages - 1 are under way, with
// warps_m x warps_n warps. Factors pass through shared memory in chunks of 8 elements along k, or along m (n) without left_along_k
// (right_along_k); a factor that is a Load has access Staged and is linear in its variables, other factors are computed by their
// statements, for which the chunk is the group. Sums then pass through shared memory into groups along n, for which the epilogue runs,
// `unroll` groups at a time. Block number = batch point * tiles + number of the tile; tiles are numbered in bands of `group_m` rows of
// tiles, down each column of a band. grid_x = blocks. With warpgroups, warps multiply in groups of four, each for all of tile_n (sm_90a); a
// block computes every grid_x-th tile of all batch points, and grid_x is as many as run at a time.
struct Matmul {
  int tile_m = 1, tile_n = 1, tile_k = 1;
  int warps_m = 1, warps_n = 1, stages = 1, group_m = 1, unroll = 1;
  bool left_along_k = false, right_along_k = false, warpgroups = false;

  static constexpr std::string_view keyword = "matmul";
  static constexpr bool simt = true;
  static constexpr ShapeTraits traits{.arrangement = Arrangement::Product, .exchanges = true, .any_size = false, .grouped = false};
  static constexpr auto fields = std::tuple{Field{"tile_m", &Matmul::tile_m, 1, 1 << 30, true},
                                            Field{"tile_n", &Matmul::tile_n, 1, 1 << 30, true},
                                            Field{"tile_k", &Matmul::tile_k, 1, 1 << 30, true},
                                            Field{"warps_m", &Matmul::warps_m, 1, 32},
                                            Field{"warps_n", &Matmul::warps_n, 1, 32},
                                            Field{"stages", &Matmul::stages, 2},
                                            Field{"group_m", &Matmul::group_m},
                                            Field{"unroll", &Matmul::unroll},
                                            Field{"left_along_k", &Matmul::left_along_k},
                                            Field{"right_along_k", &Matmul::right_along_k},
                                            Field{"warpgroups", &Matmul::warpgroups}};

  int threads(int) const { return 32 * warps_m * warps_n; }
  int unrolled_groups() const { return unroll; }
  // Blocks by warp groups may be fewer.
  sym::Expr units(const Mapping& mapping, const loops::Region& region) const;
  bool has_dead_rows(const Kernel&) const { return false; }
  int64_t dynamic_shared_bytes(const Kernel& kernel) const;
  void verify(const Kernel& kernel, const Report& report) const;
};

}  // namespace cxxinductor::plan
