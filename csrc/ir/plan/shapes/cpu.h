// Shapes of the CPU. grain: units below which a second thread does not pay; sequential: one thread executes all units in order, since a
// store has write conflicts.
// Words of ir/plan/mapping.h.
#pragma once

#include "ir/plan/shapes/shape.h"

namespace cxxinductor::plan {

// Unit u = points [u * chunk, min((u + 1) * chunk, points)) of the row-major linearised `space`; a thread that gets units [begin, end) walks
// one contiguous range of points. grid_x = ceil_div(points, chunk)
struct CpuPointwise {
  int chunk = 1;
  int grain = 1;
  bool sequential = false;

  static constexpr std::string_view keyword = "cpu_pointwise";
  static constexpr bool simt = false;
  static constexpr ShapeTraits traits{.arrangement = Arrangement::Points};
  static constexpr auto fields =
      std::tuple{Field{"chunk", &CpuPointwise::chunk}, Field{"grain", &CpuPointwise::grain}, Field{"sequential", &CpuPointwise::sequential}};

  sym::Expr units(const Mapping& mapping, const loops::Region& region) const;
};

// Unit = a row, whose vectors are dealt out to `sets` states of each reduction. persistent: values with MemorySpace::Persistent lie in a
// per-thread array of the row's (constant) length. grid_x = rows
struct CpuRows {
  int sets = 1;
  int grain = 1;
  bool persistent = false, sequential = false;

  static constexpr std::string_view keyword = "cpu_rows";
  static constexpr bool simt = false;
  static constexpr ShapeTraits traits{.arrangement = Arrangement::Rows};
  static constexpr auto fields = std::tuple{Field{"sets", &CpuRows::sets, 1, 8}, Field{"grain", &CpuRows::grain}, Field{"persistent", &CpuRows::persistent},
                                            Field{"sequential", &CpuRows::sequential}};

  sym::Expr units(const Mapping& mapping, const loops::Region& region) const;
  sym::Expr updates_of_state(const Mapping& mapping, const loops::Region& region) const;
  void verify(const Kernel& kernel, const Report& report) const;
};

// As Columns; unit = strip. columns_per_unit is a multiple of vector_width. grid_x = strips
struct CpuColumns {
  int columns_per_unit = 32;
  int grain = 1;
  bool sequential = false;

  static constexpr std::string_view keyword = "cpu_columns";
  static constexpr bool simt = false;
  static constexpr ShapeTraits traits{.arrangement = Arrangement::Columns};
  static constexpr auto fields =
      std::tuple{Field{"columns_per_unit", &CpuColumns::columns_per_unit}, Field{"grain", &CpuColumns::grain}, Field{"sequential", &CpuColumns::sequential}};

  sym::Expr units(const Mapping& mapping, const loops::Region& region) const;
  sym::Expr updates_of_state(const Mapping& mapping, const loops::Region& region) const;
  void verify(const Kernel& kernel, const Report& report) const;
};

// As Tiles; unit = tile (c, tile_var), so that a thread reads on where it stopped. Staged loads are transposed into an array on the stack;
// then the body runs for each value of tile_var, in vectors along c, of which tile is a multiple.
struct CpuTiles {
  VarId tile_var;
  int tile = 32;
  int grain = 1;

  static constexpr std::string_view keyword = "cpu_tiles";
  static constexpr bool simt = false;
  static constexpr ShapeTraits traits{.arrangement = Arrangement::Tiles, .exchanges = true};
  static constexpr auto fields = std::tuple{Field{"tile_var", &CpuTiles::tile_var}, Field{"tile", &CpuTiles::tile}, Field{"grain", &CpuTiles::grain}};

  sym::Expr units(const Mapping& mapping, const loops::Region& region) const;
  void verify(const Kernel& kernel, const Report& report) const;
};

}  // namespace cxxinductor::plan
