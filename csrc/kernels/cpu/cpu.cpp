// The families of the CPU: few threads with vectors.
#include <algorithm>
#include <limits>

#include "ir/plan/cpu_rows.h"
#include "kernels/cpu/instances.h"
#include "kernels/region/access.h"
#include "kernels/region/rows_lie.h"
#include "kernels/region/tile_accesses.h"
#include "kernels/region/work.h"
#include "kernels/registry.h"

namespace cxxinductor::kernels {
namespace {

using loops::Stmt;
using loops::VarId;
using plan::Mapping;
using sym::Expr;

// Element operations below which a second thread does not pay.
constexpr int64_t operations_for_thread = 65536;
// Persistent values of a row must stay in a core's own caches.
constexpr int64_t row_buffer_bytes = 65536;
constexpr int points_of_chunk = 1024;
constexpr int64_t tile_buffer_bytes = 16384, cache_line_bytes = 64, smallest_tile = 16;

// A side of a tile: whole cache lines of the narrowest staged type, as long as all staged values of a tile stay in the
// first-level cache.
int tile_for_cores(const FlatRegion& flat, int vector_width, VarId tile_var) {
  int64_t narrowest = 8, bytes = 0;
  for (const Stmt& stmt : flat.region.body) {
    if (!stmt.as<loops::Load>() || !is_staged(flat, stmt, flat.space.back(), tile_var)) continue;
    narrowest = std::min<int64_t>(narrowest, byte_size(stmt.dtype));
    bytes += byte_size(stmt.dtype);
  }
  int64_t tile = cache_line_bytes / narrowest;
  while (tile > smallest_tile && tile * tile * bytes > tile_buffer_bytes) tile /= 2;
  return static_cast<int>(std::max<int64_t>(tile, vector_width));
}

int grain_of(const FlatRegion& flat, int64_t points_of_unit) {
  return static_cast<int>(std::max<int64_t>(1, operations_for_thread / (points_of_unit * operations_at_point(flat))));
}

int64_t length_of_row(const FlatRegion& flat) { return std::max<int64_t>(estimate(points(flat, flat.row), flat.assumptions), 1); }

// ---- What each accepts ------------------------------------------------------------------------------------------

bool has_rows(const FlatRegion& flat, const Target&) { return rows_lie(flat) != RowsLie::Nowhere; }  // that no columns take
bool is_transposed(const FlatRegion& flat, const Target&) { return !has_write_conflicts(flat) && transposed_variable(flat).valid(); }
bool accepts_all(const FlatRegion&, const Target&) { return true; }

// ---- Mappings ---------------------------------------------------------------------------------------------------

MappedRegion map_columns(const FlatRegion& flat, const Target& target) {
  Mapping mapping = start_mapping(flat, flat.space, target);
  const int columns = 4 * mapping.vector_width;
  mapping.shape = plan::CpuColumns{columns, grain_of(flat, length_of_row(flat) * columns), has_write_conflicts(flat)};
  return {std::move(mapping), schedule_looped(flat)};
}

MappedRegion map_rows(const FlatRegion& flat, const Target& target) {
  Mapping mapping = start_mapping(flat, flat.row, target);
  plan::CpuRows& shape = mapping.shape.emplace<plan::CpuRows>();
  shape.sets = 4;
  shape.grain = grain_of(flat, length_of_row(flat));
  shape.sequential = has_write_conflicts(flat);
  if (Expr row = points(flat, flat.row); row.is_constant()) {
    Schedule persistent = schedule_persistent(flat, {.loads = false, .expensive = true});
    int64_t bytes = row.constant() * persistent.persistent_bytes;
    shape.persistent =
        bytes > 0 && bytes <= row_buffer_bytes && plan::persistent_bytes(flat.region, persistent.memory_spaces, row.constant()) <= plan::most_persistent_bytes;
    if (shape.persistent) return {std::move(mapping), std::move(persistent)};
  }
  return {std::move(mapping), schedule_looped(flat)};
}

MappedRegion map_tiles(const FlatRegion& flat, const Target& target) {
  Mapping mapping = start_mapping(flat, flat.space, target);
  const VarId tile_var = transposed_variable(flat);
  const int tile = tile_for_cores(flat, mapping.vector_width, tile_var);
  mapping.shape = plan::CpuTiles{tile_var, tile, grain_of(flat, int64_t{tile} * tile)};
  return {std::move(mapping), schedule_looped(flat)};
}

void describe_on_stack(plan::Kernel& kernel, const FlatRegion& flat, const Target& target) {
  describe_tile_accesses(kernel, flat, target, std::numeric_limits<int64_t>::max());
}

MappedRegion map_pointwise(const FlatRegion& flat, const Target& target) {
  Mapping mapping = start_mapping(flat, flat.space, target);
  mapping.shape = plan::CpuPointwise{points_of_chunk, grain_of(flat, points_of_chunk), has_write_conflicts(flat)};
  return {std::move(mapping), schedule_looped(flat)};
}

}  // namespace

const KernelFamily family::cpu_columns{
    .name = plan::CpuColumns::keyword, .accepts = have_rows_across_memory, .map = map_columns, .instantiate = instantiate_cpu_columns};
const KernelFamily family::cpu_rows{.name = plan::CpuRows::keyword, .accepts = has_rows, .map = map_rows, .instantiate = instantiate_cpu_rows};
const KernelFamily family::cpu_tiles{
    .name = plan::CpuTiles::keyword, .accepts = is_transposed, .map = map_tiles, .describe_accesses = describe_on_stack, .instantiate = instantiate_cpu_tiles};
const KernelFamily family::cpu_pointwise{
    .name = plan::CpuPointwise::keyword, .accepts = accepts_all, .map = map_pointwise, .instantiate = instantiate_cpu_pointwise};

}  // namespace cxxinductor::kernels
