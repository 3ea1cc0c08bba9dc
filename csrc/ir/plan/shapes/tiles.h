// Transposing accesses through shared memory. Words of ir/plan/mapping.h.
#pragma once

#include "ir/plan/shapes/shape.h"

namespace cxxinductor::plan {

// Pointwise over a transposing access, tile x tile points of tile_var (contiguous in the Staged loads) and the last variable `c` of space
// (contiguous in the stores), cut at the edges; numbered by outer point, then tile. grid_x = tiles
// Block = tile (tile_var, c), threads (x, y) = (t % groups, t / groups) with groups = tile / vector_width. A thread loads squares of
// vector_width x vector_width points, with groups along tile_var at x and along c at y + k * (block_threads / groups), and puts them into
// shared memory as groups along c (tile_layout.h). The body then runs with c = x * vector_width and
// tile_var = y + k * (block_threads / groups). Groups are whole: both extents are multiples of vector_width.
struct Tiles {
  VarId tile_var;
  int tile = 32;
  int block_threads = 256;

  static constexpr std::string_view keyword = "tiles";
  static constexpr bool simt = true;
  static constexpr ShapeTraits traits{.arrangement = Arrangement::Tiles, .exchanges = true};
  static constexpr auto fields =
      std::tuple{Field{"tile_var", &Tiles::tile_var}, Field{"tile", &Tiles::tile}, Field{"block_threads", &Tiles::block_threads, 1, most_block_threads}};

  int threads(int) const { return block_threads; }
  int groups_of_thread(int vector_width) const { return tile * tile / (vector_width * block_threads); }
  sym::Expr units(const Mapping& mapping, const loops::Region& region) const;
  bool has_dead_rows(const Kernel&) const { return false; }
  void verify(const Kernel& kernel, const Report& report) const;
};

// Of every shape with tiles: their number, and what their sides must fulfil. verify_tile: false where groups do not divide a tile.
sym::Expr tile_units(const Mapping& mapping, const loops::Region& region, VarId tile_var, int tile);
bool verify_tile(const Mapping& mapping, VarId tile_var, int tile, const Report& report);

}  // namespace cxxinductor::plan
