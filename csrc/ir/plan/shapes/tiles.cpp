#include "ir/plan/shapes/tiles.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/plan/plan.h"
#include "ir/plan/tile_layout.h"

namespace cxxinductor::plan {

sym::Expr tile_units(const Mapping& mapping, const loops::Region& region, VarId tile_var, int tile) {
  sym::Expr units = 1;
  for (VarId v : mapping.space) {
    const sym::Expr extent = region.vars[v].extent;
    units = units * (v == tile_var || v == mapping.space.back() ? sym::ceil_div(extent, tile) : extent);
  }
  return units;
}

bool verify_tile(const Mapping& mapping, VarId tile_var, int tile, const Report& report) {
  if (std::ranges::find(mapping.space, tile_var) == mapping.space.end() || tile_var == mapping.space.back())
    report("P4", "tile_var is a variable of space other than the last");
  const bool whole = tile % mapping.vector_width == 0;
  if (!whole) report("P4", fmt::format("a tile of {} columns is cut into vectors of {}", tile, mapping.vector_width));
  return whole;
}

sym::Expr Tiles::units(const Mapping& mapping, const loops::Region& region) const { return tile_units(mapping, region, tile_var, tile); }

void Tiles::verify(const Kernel& kernel, const Report& report) const {
  const Mapping& mapping = kernel.mapping;
  if (!verify_tile(mapping, tile_var, tile, report)) return;
  if (mapping.vector_tail) report("P4", fmt::format("tiles have groups of {} that are cut at their edges", mapping.vector_width));
  const int groups = tile / mapping.vector_width, abreast = block_threads / groups;
  if (abreast < 1 || block_threads % groups != 0 || groups % abreast != 0)
    report("P4", fmt::format("{} threads do not share {} x {} squares of a tile evenly", block_threads, groups, groups));
  int64_t bytes = 0;
  for (size_t s = 0; s < kernel.region.body.size() && s < kernel.access.size(); ++s)
    if (kernel.access[StmtId(s)] == AccessKind::Staged) bytes += TileLayout{tile, mapping.vector_width, byte_size(kernel.region.body[StmtId(s)].dtype)}.bytes();
  if (bytes > static_shared_bytes) report("P4", fmt::format("tiles of {} bytes exceed shared memory of {}", bytes, static_shared_bytes));
}

}  // namespace cxxinductor::plan
