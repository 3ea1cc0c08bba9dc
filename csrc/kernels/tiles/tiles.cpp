// Transposing accesses on GPUs.
#include <algorithm>

#include "ir/plan/tile_layout.h"
#include "kernels/region/access.h"
#include "kernels/region/tile_accesses.h"
#include "kernels/registry.h"

namespace cxxinductor::kernels {
namespace {

using loops::Stmt;
using loops::VarId;
using plan::Mapping;

// Bytes that a thread moves at a time through a tile; elements of a group, whose square a thread holds; shared memory of a tile.
constexpr int tile_access_bytes = 8, widest_tile_group = 4;
constexpr int64_t most_tile_bytes = 34 * 1024;

// Is every group of `width` along c and along tile_var whole and aligned?
bool tiles_in_groups(const FlatRegion& flat, VarId tile_var, int width) {
  const VarId c = flat.space.back();
  if (!prove_divides(width, flat.extent(c), flat.assumptions) || !prove_divides(width, flat.extent(tile_var), flat.assumptions))
    return false;
  return std::all_of(flat.region.body.begin(), flat.region.body.end(), [&](const Stmt& stmt) {
    return !is_tiled(flat, stmt, c, tile_var) ||
           classify_access(flat, stmt, tile_var, width, true) == plan::AccessKind::Vector;
  });
}

MappedRegion map_tiles(const FlatRegion& flat, const Target& target) {
  Mapping mapping = start_mapping(flat, flat.space, target);
  const VarId tile_var = transposed_variable(flat);
  int widest = 1, bytes = 0;
  for (const Stmt& stmt : flat.region.body) {
    if (!is_tiled(flat, stmt, flat.space.back(), tile_var)) continue;
    widest = std::max(widest, byte_size(stmt.dtype));
    bytes += byte_size(stmt.dtype);
  }
  mapping.vector_width = std::min({mapping.vector_width, std::max(1, tile_access_bytes / widest), widest_tile_group});
  while (mapping.vector_width > 1 && !tiles_in_groups(flat, tile_var, mapping.vector_width)) mapping.vector_width /= 2;
  // Large tiles keep more loads under way and cut fewer sectors of rows of odd length, but must not leave multiprocessors idle.
  const plan::TileLayout large{64, mapping.vector_width, bytes};
  const auto fits = [&](VarId v) { return estimate(flat.extent(v), flat.assumptions) >= large.tile; };
  const int64_t tiles = estimate(points(flat, flat.space), flat.assumptions) / (large.tile * large.tile);
  const bool pays = fits(tile_var) && fits(flat.space.back()) && tiles >= target.multiprocessors;
  const int tile = pays && widest <= 4 && large.bytes() <= most_tile_bytes ? large.tile : 32;
  const int groups = tile / mapping.vector_width;
  mapping.shape = plan::Tiles{tile_var, tile, std::min(256, groups * groups)};  // a thread takes a square of groups at least
  return {std::move(mapping), schedule_looped(flat)};
}

bool is_transposed(const FlatRegion& flat, const Target&) { return flat.row.empty() && transposed_variable(flat).valid(); }

// Tiles for as many loads as shared memory holds; the others are made where they are used.
void describe_in_shared_memory(plan::Kernel& kernel, const FlatRegion& flat, const Target& target) {
  describe_tile_accesses(kernel, flat, target, plan::static_shared_bytes);
}

}  // namespace

const KernelFamily family::tiles{
    .name = plan::Tiles::keyword, .simt = true, .accepts = is_transposed, .map = map_tiles, .describe_accesses = describe_in_shared_memory};

}  // namespace cxxinductor::kernels
