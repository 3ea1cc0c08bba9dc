// Transposing accesses on GPUs.
#include <algorithm>

#include "ir/plan/tile_layout.h"
#include "kernels/body/lower_body.h"
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
  if (!prove_divides(width, flat.extent(c), flat.assumptions) || !prove_divides(width, flat.extent(tile_var), flat.assumptions)) return false;
  return std::all_of(flat.region.body.begin(), flat.region.body.end(), [&](const Stmt& stmt) {
    return !is_tiled(flat, stmt, c, tile_var) || classify_access(flat, stmt, tile_var, width, true) == plan::AccessKind::Vector;
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

// Of one tile: without edges, or with them. Its passes follow what threads put into shared memory.
Values tile_of(const Body& body, bool edges) {
  std::vector<Values> passes = passes_of(body);
  for (Values& pass : passes) pass.add("puts_down", when(&pass == &passes.back()));
  return {{"edges", when(edges)}, {"passes", std::move(passes)}};
}

Instance instantiate_tiles(const plan::Kernel& kernel, plan::Variant variant) {
  const plan::Mapping& mapping = kernel.mapping;
  const auto& shape = mapping.get<plan::Tiles>();
  const VarId across = mapping.space.back(), along = shape.tile_var;
  const int width = mapping.vector_width, groups = shape.tile / width, abreast = shape.block_threads / groups;
  const int turns = groups_of_thread(mapping);
  const Body body = lower_segment(kernel, 0);
  std::vector<Values> staged, outer_point, tiles;
  for (const plan::StmtId id : body.slot.stmts) {
    if (kernel.access[id] != plan::AccessKind::Staged) continue;
    const DType dtype = kernel.region.body[id].dtype;
    const plan::TileLayout layout{shape.tile, width, byte_size(dtype)};
    staged.push_back({{"type", dtype}, {"t", Local{'t', id}}, {"m", Local{'m', id}}, {"pitch", layout.pitch()}, {"address", Address{id}}});
  }
  std::vector<VarId> outer;
  std::ranges::copy_if(mapping.space, std::back_inserter(outer), [&](VarId v) { return v != across && v != along; });
  if (!outer.empty()) outer_point.push_back({{"coordinates", Coordinates{"cxxi_outer", outer}}});
  const auto has_edges = [&](VarId v) { return !sym::prove_divides(shape.tile, kernel.region.vars[v].extent, kernel.assumptions); };
  const bool cut = has_edges(across) || has_edges(along);
  tiles.push_back(tile_of(body, false));
  if (cut) tiles.push_back(tile_of(body, true));
  return {"tiles_kernel",
          {{"threads", shape.block_threads},
           {"tile", shape.tile},
           {"width", width},
           {"groups", groups},
           {"abreast", abreast},
           {"squares", groups / abreast},
           {"turns", turns},
           {"rows_of_turn", shape.tile / turns},
           {"vectorized", variant.vectorized},
           {"block", BlockNumber()},
           {"uniform_loads", loads_made_once(kernel)},
           {"staged", std::move(staged)},
           {"across", across},
           {"along", along},
           {"extent_across", kernel.region.vars[across].extent},
           {"extent_along", kernel.region.vars[along].extent},
           {"tiles_across", count_groups(kernel, {across}, shape.tile)},
           {"tiles_along", count_groups(kernel, {along}, shape.tile)},
           {"outer", std::move(outer_point)},
           {"ahead", groups_ahead(kernel, body)},
           {"cut", when(cut)},
           {"tiles", std::move(tiles)}}};
}

}  // namespace

const KernelFamily family::tiles{.name = plan::Tiles::keyword,
                                 .simt = true,
                                 .accepts = is_transposed,
                                 .map = map_tiles,
                                 .describe_accesses = describe_in_shared_memory,
                                 .instantiate = instantiate_tiles};

}  // namespace cxxinductor::kernels
