#include "schedule/plan/matmul_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ir/matmul_rows.h"
#include "ir/plan/matmul.h"

namespace cxxinductor::schedule {
namespace {

// Seconds between two kernels of a stream, including the waits of the first blocks and the idle time of the last ones.
constexpr double library_overhead = 2.5e-6, template_overhead = 2.8e-6;

// A model of the library, fitted to its times: large tiles run at full rate, small ones below, one per multiprocessor. The
// depth is split between blocks if they are too few and the pieces stay deep enough.
struct LibraryTile {
  double m, n, efficiency;
};
constexpr std::array library_tiles = {LibraryTile{128, 256, 1.0}, LibraryTile{128, 128, 0.95},
                                      LibraryTile{64, 128, 0.55}, LibraryTile{64, 64, 0.5}};
constexpr double least_split_depth = 1024, split_overhead = 0.8e-6;

constexpr int64_t registers_of_multiprocessor = 65536;
constexpr double l2_bytes_per_second = 45e9;  // to each multiprocessor while all of them read
// Elements of fragments that shared memory gives while a warp's tensor core does one multiply-add each, see below.
constexpr double fragments_per_multiply = 0.05;

// The library's time for a small product with rows of 2 or 4 bytes' alignment, on the multiprocessor that has it, and the template's from a block's
// first load to its last store, while others use the memory too (49 x 49 x 32 and 49 x 32 x 49 in batches of 1024 to 8192, on an H100).
constexpr double small_product_seconds = 1.1e-6, small_block_seconds = 3e-6;

// Of warp groups: seconds of a step besides its multiplications (barriers, the start of the products), the part of a tile's way to memory
// during which nothing is multiplied, and the time until all stages are under way, as fitted to times of all tiles on an H200.
constexpr double warpgroup_step_overhead = 93e-9, exposed_store = 0.5, warpgroup_start = 2.8e-6;

bool is_small(const MatmulSize& size) { return std::max({size.m, size.n, size.k}) <= static_cast<double>(small_product_extent); }

int64_t shared_bytes(const MatmulTile& tile, int kept_bytes) {
  const int64_t factors = int64_t{2} * tile.stages * (tile.m + tile.n) * tile.k;
  if (tile.warpgroups) return factors + tile.warps_m * plan::warpgroup_part_bytes;
  return std::max(factors, int64_t{kept_bytes} * tile.m * (tile.n + plan::matmul_row_padding));
}

double bytes_of(const MatmulSize& size) {
  return 2 * size.batch * (size.m * size.k + size.k * size.n + size.m * size.n);
}

// The template's arithmetic on the multiprocessor with the most blocks.
double warps_time(const MatmulSize& size, const MatmulTile& tile, const Target& target) {
  const double blocks = size.batch * std::ceil(size.m / tile.m) * std::ceil(size.n / tile.n);
  const double of_one = std::ceil(blocks / target.multiprocessors);
  const double abreast = std::min(of_one, static_cast<double>(matmul_residents(tile, target)));
  // Fewer warps than keep the tensor cores busy; warps whose parts are small wait for shared memory.
  const double warps = abreast * tile.warps_m * tile.warps_n;
  const double busy = warps / (warps + 2.5);
  const double part_m = tile.m / tile.warps_m, part_n = tile.n / tile.warps_n;
  const double fragments = (part_m + part_n) / (part_m * part_n);
  const double slowed = std::max(1.0, fragments / fragments_per_multiply);
  const double rate = target.template_flops / target.multiprocessors * busy / slowed * 1.2;
  const double depth = std::ceil(size.k / tile.k) * tile.k;
  // Every block reads its rows of both factors from the L2 cache.
  const double streamed = blocks * 2 * (tile.m + tile.n) * depth / (target.multiprocessors * l2_bytes_per_second);
  const double waiting = is_small(size) ? (std::ceil(of_one / matmul_residents(tile, target)) - 1) * small_block_seconds : 0;
  return std::max({of_one * 2 * tile.m * tile.n * depth / rate, streamed, waiting});
}

double warpgroups_time(const MatmulSize& size, const MatmulTile& tile, const Target& target) {
  const double tiles = size.batch * std::ceil(size.m / tile.m) * std::ceil(size.n / tile.n);
  const double rate = target.warpgroup_flops / target.multiprocessors, memory = target.bytes_per_second / target.multiprocessors;
  const double step = warpgroup_step_overhead + 2.0 * tile.m * tile.n * tile.k / rate;
  const double of_one = std::ceil(tiles / target.multiprocessors);
  return warpgroup_start + of_one * (std::ceil(size.k / tile.k) * step + exposed_store * 2 * tile.m * tile.n / memory);
}

}  // namespace

double library_time(const MatmulSize& size, const Target& target, double slowdown) {
  const double rate = target.library_flops / target.multiprocessors;
  double computing = std::numeric_limits<double>::infinity();
  for (const LibraryTile& tile : library_tiles) {
    const double blocks = size.batch * std::ceil(size.m / tile.m) * std::ceil(size.n / tile.n);
    for (double pieces = 1;; pieces *= 2) {
      if (pieces > 1 && (size.k / pieces < least_split_depth || blocks * pieces > target.multiprocessors)) break;
      const double waves = std::ceil(blocks * pieces / target.multiprocessors);
      const double time = waves * 2 * tile.m * tile.n * size.k / pieces / (rate * tile.efficiency);
      computing = std::min(computing, time + (pieces > 1 ? split_overhead : 0));
    }
  }
  computing *= slowdown;
  if (slowdown >= unaligned_slowdown(4) && is_small(size))
    computing = std::max(computing, size.batch / target.multiprocessors * small_product_seconds);
  return library_overhead + std::max(computing, bytes_of(size) / target.bytes_per_second);
}

int matmul_residents(const MatmulTile& tile, const Target& target) {
  const int64_t by_memory = target.shared_bytes_per_block / shared_bytes(tile, 2);
  const int64_t by_registers = registers_of_multiprocessor / (matmul_threads(tile) * tile.registers);
  return static_cast<int>(std::max(int64_t{1}, std::min(by_memory, by_registers)));
}

double template_time(const MatmulSize& size, const MatmulTile& tile, const Target& target) {
  const double computing = tile.warpgroups ? warpgroups_time(size, tile, target) : warps_time(size, tile, target);
  return template_overhead + std::max(computing, bytes_of(size) / target.bytes_per_second);
}

const MatmulTile& best_tile(const MatmulSize& size, int kept_bytes, const Target& target) {
  const MatmulTile* best = nullptr;
  double least = 0;
  for (const MatmulTile& tile : matmul_tiles) {
    if (tile.warpgroups && target.warpgroup_flops == 0) continue;
    if (tile.stages == 2 && size.k > tile.k) continue;
    if (shared_bytes(tile, kept_bytes) > target.shared_bytes_per_block) continue;
    const double time = template_time(size, tile, target);
    if (best && time >= least) continue;
    best = &tile;
    least = time;
  }
  return *best;
}

}  // namespace cxxinductor::schedule
