#include "schedule/plan/mapping.h"

#include <algorithm>
#include <bit>

#include "ir/plan/columns.h"
#include "ir/plan/cpu_rows.h"
#include "ir/plan/matmul.h"
#include "ir/plan/tile_layout.h"
#include "ir/target.h"
#include "kernels/region/access.h"
#include "schedule/plan/matmul.h"
#include "schedule/plan/serial_rows.h"
#include "support/overloaded.h"
#include "sym/integer.h"

namespace cxxinductor::schedule {
namespace {

using kernels::FlatRegion;
using kernels::Schedule;
using loops::Stmt;
using loops::VarId;
using plan::Mapping;
using plan::vector_variable;
using plan::Segment;
using sym::Expr;

int64_t power_of_two_up(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}
int64_t power_of_two_down(int64_t n) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

int count_row_loops(const Schedule& schedule) {
  return static_cast<int>(std::count_if(schedule.segments.begin(), schedule.segments.end(),
                                        [](const Segment& s) { return s.kind == Segment::Kind::RowLoop; }));
}

// Loads that a thread makes for each of its groups: they vary along v.
int count_loads(const FlatRegion& flat, VarId v) {
  return static_cast<int>(
      std::count_if(flat.region.body.begin(), flat.region.body.end(),
                    [v](const Stmt& stmt) { return stmt.as<loops::Load>() && v.valid() && stmt.vars.contains(v); }));
}

// Random numbers keep the arithmetic units as busy as memory; more threads with less work each overlap the two better.
bool uses_random(const FlatRegion& flat) {
  return std::any_of(flat.region.body.begin(), flat.region.body.end(), [](const Stmt& stmt) {
    const auto* apply = stmt.as<loops::Apply>();
    return apply && info(apply->op).traits.random;
  });
}

// ---- Shape ------------------------------------------------------------------------------------------------------

// Does the contiguous variable of most bytes of the widest-ranging loads lie across the row?
bool lies_across(const FlatRegion& flat) {
  if (flat.space.empty()) return false;
  int rank = 0;
  for (const Stmt& stmt : flat.region.body)
    if (stmt.as<loops::Load>()) rank = std::max(rank, stmt.vars.count());
  int along = 0, across = 0;
  for (const Stmt& stmt : flat.region.body) {
    if (!stmt.as<loops::Load>() || stmt.vars.count() < rank) continue;
    VarId v = contiguous_variable(flat, stmt);
    if (!v.valid()) continue;
    if (v == flat.space.back())
      across += byte_size(stmt.dtype);
    else if (flat.row_set().contains(v))
      along += byte_size(stmt.dtype);
  }
  // Few columns would leave most threads of a strip idle.
  return across > along && estimate(flat.extent(flat.space.back()), flat.assumptions) >= 8;
}

// How reductions relate to memory.
enum class RowsLie : uint8_t { Nowhere, AlongMemory, AcrossMemory };

RowsLie rows_lie(const FlatRegion& flat) {
  if (flat.serial.valid()) return RowsLie::AlongMemory;
  if (flat.row.empty()) return RowsLie::Nowhere;
  return lies_across(flat) ? RowsLie::AcrossMemory : RowsLie::AlongMemory;
}

// ---- GPUs -----------------------------------------------------------------------------------------

// Threads for a row of n elements that stays in registers; more of them when rows are too few to fill the device.
int64_t threads_for_row(int64_t n) {
  if (n <= 64) return 8;
  if (n <= 128) return 16;
  if (n <= 3072) return 32;
  if (n <= 6144) return 64;
  if (n <= 16384) return 128;
  return 256;
}

constexpr int64_t registers_of_multiprocessor = 65536;
constexpr int64_t longest_persistent_row = int64_t{1} << 20, shortest_persistent_row = 16;
constexpr int64_t idle_items = 4;  // of as many, one may be used
constexpr int64_t registers_for_addresses = 28;

int64_t persistent_register_limit(int64_t block_threads) {
  return std::min<int64_t>(64, registers_of_multiprocessor / block_threads - registers_for_addresses);
}

int64_t widen_for_few_rows(const FlatRegion& flat, const Target& target, int64_t threads, int64_t groups) {
  Expr rows = points(flat, flat.space);
  if (!rows.is_constant()) return threads;
  int64_t wanted = int64_t{512} * target.multiprocessors;
  while (threads * 2 <= std::min<int64_t>(groups, target.max_threads_per_block) && rows.constant() * threads < wanted)
    threads *= 2;
  return threads;
}

plan::Rows rows_of(int64_t threads) {
  return {.threads_per_row = static_cast<int>(threads), .rows_per_block = static_cast<int>(std::max<int64_t>(1, 128 / threads))};
}

// Rows that stay in registers, if they fit.
std::optional<plan::Rows> persistent_rows(const FlatRegion& flat, const Target& target, int vector_width, const Schedule& persistent) {
  // A symbolic length counts as the longest that the ranges allow, unless most rows would then leave most items idle.
  const sym::Interval lengths = bounds(points(flat, flat.row), flat.assumptions);
  const int64_t length = lengths.high;
  const int64_t groups = bounds(group_count(flat, flat.row, vector_width), flat.assumptions).high;
  const bool spread = lengths.low != length && length / idle_items > std::max(lengths.low, shortest_persistent_row);
  if (persistent.persistent_bytes == 0 || groups > longest_persistent_row || spread) return std::nullopt;
  int64_t threads = std::min(threads_for_row(length), power_of_two_up(groups));
  if (threads > target.warp && uses_random(flat)) threads = std::min(2 * threads, power_of_two_up(groups));
  threads = widen_for_few_rows(flat, target, threads, groups);
  for (; threads <= target.max_threads_per_block; threads *= 2) {
    int64_t items = sym::ceil_quotient(groups, threads);
    int64_t registers = sym::ceil_quotient(items * vector_width * persistent.persistent_bytes, 4);
    if (registers > persistent_register_limit(std::max<int64_t>(threads, 128))) continue;
    plan::Rows rows = rows_of(threads);
    rows.items_per_thread = static_cast<int>(std::max<int64_t>(items, 1));
    rows.persistent = true;
    return rows;
  }
  return std::nullopt;
}

plan::Rows looped_rows(const FlatRegion& flat, const Target& target, int vector_width) {
  Expr groups = group_count(flat, flat.row, vector_width);
  // Narrow loads (rows of odd length) need more of them to keep memory busy.
  const int64_t narrow = std::clamp<int64_t>(4 / vector_width, 1, 4);
  const int64_t most_in_flight = (count_loads(flat, flat.row.back()) <= 2 ? 4 : 2) * narrow;
  int64_t most = std::min<int64_t>(1024, target.max_threads_per_block);
  int64_t threads = 128, in_flight = most_in_flight;
  if (groups.is_constant()) {
    int64_t count = groups.constant();
    threads = std::clamp<int64_t>(power_of_two_down(sym::ceil_quotient(count, most_in_flight)),
                                  std::min<int64_t>(8, power_of_two_up(count)), most / 2);
    threads = widen_for_few_rows(flat, target, threads, count);
    in_flight = std::clamp<int64_t>(power_of_two_down(count / threads), 1, most_in_flight);
  } else if (sym::Interval range = bounds(groups, flat.assumptions); range.high <= 1024) {
    threads = 32;
  }
  // One long row runs on one block.
  if (flat.space.empty() && !groups.is_constant()) threads = most;
  plan::Rows rows = rows_of(threads);
  rows.in_flight = static_cast<int>(in_flight);
  return rows;
}

constexpr int least_strip = 8;  // columns
// Threads that hold more words of a column from row to row take fewer columns: registers would leave room for few threads. EfficientNet's
// gradients of batch norms and SiLU (7 or 8 words) take 0.6 to 0.85 of the time by fours of bf16 on an H100 (benchmarks/graphs.py --kernels 45).
constexpr int most_words = 4, columns_of_many_words = 4;

int words_of_column(const FlatRegion& flat) {
  int words = 0;
  for (const Stmt& stmt : flat.region.body) {
    const bool in_row = std::ranges::any_of(flat.row, [&](VarId v) { return stmt.vars.contains(v); });
    if (const auto* reduce = stmt.as<loops::Reduce>()) words += static_cast<int>(form(reduce->reduction).state.size());
    else if (stmt.as<loops::Load>() && !in_row && stmt.vars.contains(flat.space.back())) ++words;
  }
  return words;
}

void map_columns(const FlatRegion& flat, const Target& target, Mapping& mapping) {
  plan::Columns shape;
  Expr columns = flat.extent(flat.space.back());
  std::vector<VarId> outer(flat.space.begin(), flat.space.end() - 1);
  auto strip_width = [](int width) { return std::max(8, 32 / width) * width; };
  Expr strips = points(flat, flat.space);
  auto few = [&](int width) {
    return strips.is_constant() && points(flat, outer).constant() * sym::ceil_quotient(columns.constant(), width) < target.multiprocessors;
  };
  while (mapping.vector_width > 2 && few(strip_width(mapping.vector_width))) mapping.vector_width /= 2;
  if (words_of_column(flat) > most_words) mapping.vector_width = std::min(mapping.vector_width, columns_of_many_words);
  shape.columns_per_block = strip_width(mapping.vector_width);
  // The last strip of a row leaves threads idle: 64 columns a strip would leave a quarter of 144 channels' threads without work, 32 a tenth.
  if (columns.is_constant()) {
    const int64_t count = columns.constant();
    const auto covered = [&](int64_t strip) { return sym::ceil_quotient(count, strip) * strip; };
    const int least = std::max(least_strip, 2 * mapping.vector_width);
    for (int strip = shape.columns_per_block / 2; strip >= least && covered(shape.columns_per_block) * 8 > count * 9; strip /= 2)
      if (covered(strip) < covered(shape.columns_per_block)) shape.columns_per_block = strip;
  }
  // A thread adds up a few rows before threads join; short rows leave threads for wider strips, whatever they were narrowed for.
  int64_t length = estimate(points(flat, flat.row), flat.assumptions);
  int64_t threads = length >= 4096 ? 512 : 256;
  // Strips on a few multiprocessors alone: narrow ones, down to a sector of memory, with all threads that a block may have.
  if (few(shape.columns_per_block)) {
    while (shape.columns_per_block > least_strip && few(shape.columns_per_block)) shape.columns_per_block /= 2;
    threads = std::min<int64_t>(1024, target.max_threads_per_block);
  }
  auto groups = [&] { return shape.columns_per_block / mapping.vector_width; };
  shape.threads_per_row = static_cast<int>(std::clamp<int64_t>(power_of_two_up(length / 4), 1, threads / groups()));
  int64_t width = estimate(columns, flat.assumptions);
  while (groups() * shape.threads_per_row < 128 && shape.columns_per_block < width) shape.columns_per_block *= 2;
  mapping.shape = shape;
  while (shape.threads_per_row > 1 && plan::columns_shared_bytes(flat.region, mapping) > plan::static_shared_bytes) {
    shape.threads_per_row /= 2;
    mapping.shape = shape;
  }
  shape.in_flight = static_cast<int>(std::clamp<int64_t>(power_of_two_down(length / shape.threads_per_row), 1, 4));
  mapping.shape = shape;
}

void map_pointwise(const FlatRegion& flat, const Target& target, Mapping& mapping) {
  plan::Pointwise& shape = mapping.shape.emplace<plan::Pointwise>();
  Expr count = points(flat, flat.space);
  const int loads = count_loads(flat, flat.space.empty() ? VarId() : flat.space.back());
  if (!count.is_constant()) {
    shape.unroll = loads <= 2 ? 2 : 1;
    return;
  }
  // Narrower vectors before idle multiprocessors.
  int64_t few = int64_t{64} * target.multiprocessors;
  while (mapping.vector_width > 1 && count.constant() / mapping.vector_width < few) mapping.vector_width /= 2;
  int64_t groups = sym::ceil_quotient(count.constant(), mapping.vector_width);
  if (groups <= int64_t{256} * target.multiprocessors) shape.block_threads = 128;
  // Unrolling must leave two waves of blocks, eight on a multiprocessor.
  int64_t two_waves = int64_t{2} * 8 * 256 * target.multiprocessors;
  int most = std::clamp(8 / std::max(loads, 1), 1, uses_random(flat) ? 2 : 4);
  // One wide load a thread: more blocks hide its latency better than more loads (a copy of 64M f32 on an H200 reaches 99 % of
  // torch's bandwidth with one, 95 with four).
  if (loads == 1 && mapping.vector_width >= 4 && !uses_random(flat)) most = 1;
  while (shape.unroll * 2 <= most && groups / (shape.unroll * 2) >= two_waves) shape.unroll *= 2;
}

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

void map_tiles(const FlatRegion& flat, const Target& target, Mapping& mapping, VarId tile_var) {
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
}

MappedRegion map_for_gpu(const FlatRegion& flat, const Target& target, RowsLie rows, Mapping mapping) {
  if (rows == RowsLie::Nowhere) {
    if (VarId tile_var = transposed_variable(flat); tile_var.valid())
      map_tiles(flat, target, mapping, tile_var);
    else
      map_pointwise(flat, target, mapping);
    return {std::move(mapping), schedule_looped(flat)};
  }
  if (rows == RowsLie::AcrossMemory) {
    map_columns(flat, target, mapping);
    return {std::move(mapping), schedule_looped(flat)};
  }
  if (flat.serial.valid()) return map_serial_rows(flat, target, std::move(mapping));
  // Where registers are too few for expensive values, computing those again is still cheaper than reading the row
  // again.
  for (bool expensive : {true, false}) {
    Schedule persistent = schedule_persistent(flat, {.loads = true, .expensive = expensive});
    if (count_row_loops(persistent) <= 1) continue;
    if (const auto fitting = persistent_rows(flat, target, mapping.vector_width, persistent)) {
      mapping.shape = *fitting;
      return {std::move(mapping), std::move(persistent)};
    }
  }
  mapping.shape = looped_rows(flat, target, mapping.vector_width);
  return {std::move(mapping), schedule_looped(flat)};
}

// ---- Few threads with vectors -----------------------------------------------------------------------------------

// Element operations below which a second thread does not pay.
constexpr int64_t operations_for_thread = 65536;
// Persistent values of a row must stay in a core's own caches.
constexpr int64_t row_buffer_bytes = 65536;
constexpr int points_of_chunk = 1024;
constexpr int64_t tile_buffer_bytes = 16384, cache_line_bytes = 64, smallest_tile = 16;

int64_t operations_at_point(const FlatRegion& flat) {
  int64_t operations = 0;
  for (const Stmt& stmt : flat.region.body) {
    const auto* apply = stmt.as<loops::Apply>();
    operations += apply && info(apply->op).traits.transcendental ? 8 : 1;
  }
  return std::max<int64_t>(operations, 1);
}

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

MappedRegion map_for_cpu(const FlatRegion& flat, RowsLie rows, Mapping mapping) {
  const bool sequential = has_write_conflicts(flat);
  if (rows == RowsLie::Nowhere) {
    const VarId tile_var = sequential ? VarId() : transposed_variable(flat);
    if (tile_var.valid()) {
      const int tile = tile_for_cores(flat, mapping.vector_width, tile_var);
      mapping.shape = plan::CpuTiles{tile_var, tile, grain_of(flat, int64_t{tile} * tile)};
    } else {
      mapping.shape = plan::CpuPointwise{points_of_chunk, grain_of(flat, points_of_chunk), sequential};
    }
    return {std::move(mapping), schedule_looped(flat)};
  }
  const int64_t length = std::max<int64_t>(estimate(points(flat, flat.row), flat.assumptions), 1);
  if (rows == RowsLie::AcrossMemory) {
    const int columns = 4 * mapping.vector_width;
    mapping.shape = plan::CpuColumns{columns, grain_of(flat, length * columns), sequential};
    return {std::move(mapping), schedule_looped(flat)};
  }
  plan::CpuRows& shape = mapping.shape.emplace<plan::CpuRows>();
  shape.sets = 4;
  shape.grain = grain_of(flat, length);
  shape.sequential = sequential;
  if (Expr row = points(flat, flat.row); row.is_constant()) {
    Schedule persistent = schedule_persistent(flat, {.loads = false, .expensive = true});
    int64_t bytes = row.constant() * persistent.persistent_bytes;
    shape.persistent = bytes > 0 && bytes <= row_buffer_bytes &&
                       plan::persistent_bytes(flat.region, persistent.memory_spaces, row.constant()) <= plan::most_persistent_bytes;
    if (shape.persistent) return {std::move(mapping), std::move(persistent)};
  }
  return {std::move(mapping), schedule_looped(flat)};
}

}  // namespace

VarId transposed_variable(const FlatRegion& flat) {
  if (flat.space.size() < 2) return {};
  VarId c = flat.space.back();
  if (estimate(flat.extent(c), flat.assumptions) < 16) return {};
  for (const Stmt& stmt : flat.region.body)
    if (stmt.as<loops::Store>() && contiguous_variable(flat, stmt) != c) return {};
  IdVector<VarId, int> bytes(flat.region.vars.size());
  VarId best;
  for (const Stmt& stmt : flat.region.body) {
    if (!stmt.as<loops::Load>()) continue;
    VarId v = contiguous_variable(flat, stmt);
    if (!v.valid() || v == c || estimate(flat.extent(v), flat.assumptions) < 16) continue;
    if (!is_staged(flat, stmt, c, v)) continue;
    bytes[v] += byte_size(stmt.dtype);
    if (!best.valid() || bytes[v] > bytes[best]) best = v;
  }
  return best;
}

Expr group_count(const FlatRegion& flat, const std::vector<VarId>& vars, int vector_width) {
  if (vars.empty()) return 1;
  std::vector<VarId> outer(vars.begin(), vars.end() - 1);
  return simplify(points(flat, outer) * ceil_div(flat.extent(vars.back()), vector_width), flat.assumptions);
}

MappedRegion map_region(const FlatRegion& flat, const Target& target) {
  Mapping mapping;
  mapping.space = flat.space;
  mapping.row = flat.row;
  const RowsLie rows = rows_lie(flat);
  const std::vector<VarId>& list = rows == RowsLie::AlongMemory ? flat.row : flat.space;
  mapping.vector_width = choose_vector_width(flat, list.empty() ? VarId() : list.back(), target);
  MappedRegion mapped = is_gpu(target) ? map_for_gpu(flat, target, rows, std::move(mapping)) : map_for_cpu(flat, rows, std::move(mapping));
  VarId v = vector_variable(mapped.mapping);
  mapped.mapping.vector_tail = v.valid() && !prove_divides(mapped.mapping.vector_width, flat.extent(v), flat.assumptions);
  return mapped;
}

Expr grid_size(const FlatRegion& flat, const Mapping& mapping, const Target& target) {
  const auto tiles = [&](VarId tile_var, int tile) {
    Expr grid = 1;
    for (VarId v : mapping.space)
      grid = grid * (v == tile_var || v == mapping.space.back() ? ceil_div(flat.extent(v), tile) : flat.extent(v));
    return grid;
  };
  const auto blocks = [&](const plan::Matmul& matmul) {
    Expr grid = 1;
    for (VarId v : mapping.space) {
      const int tile = v == plan::matmul_m(mapping) ? matmul.tile_m : v == plan::matmul_n(mapping) ? matmul.tile_n : 1;
      grid = grid * ceil_div(flat.extent(v), tile);
    }
    return matmul.warpgroups ? sym::min(grid, matmul_blocks_abreast(matmul, target)) : grid;
  };
  const Expr grid = std::visit(
      Overloaded{[&](const plan::Pointwise& shape) {
                   return ceil_div(group_count(flat, mapping.space, mapping.vector_width), shape.block_threads * shape.unroll);
                 },
                 [&](const plan::Rows& shape) { return ceil_div(points(flat, mapping.space), shape.rows_per_block); },
                 [&](const plan::SerialRows&) { return points(flat, mapping.space); },
                 [&](const plan::Columns& shape) { return group_count(flat, mapping.space, shape.columns_per_block); },
                 [&](const plan::Tiles& shape) { return tiles(shape.tile_var, shape.tile); },
                 [&](const plan::Matmul& shape) { return blocks(shape); },
                 [&](const plan::CpuPointwise& shape) { return ceil_div(points(flat, mapping.space), shape.chunk); },
                 [&](const plan::CpuRows&) { return points(flat, mapping.space); },
                 [&](const plan::CpuColumns& shape) { return group_count(flat, mapping.space, shape.columns_per_unit); },
                 [&](const plan::CpuTiles& shape) { return tiles(shape.tile_var, shape.tile); }},
      mapping.shape);
  return simplify(grid, flat.assumptions);
}

}  // namespace cxxinductor::schedule
