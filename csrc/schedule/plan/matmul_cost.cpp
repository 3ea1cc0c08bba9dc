#include "schedule/plan/matmul_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ir/plan/matmul.h"

namespace cxxinductor::schedule {
namespace {

// Time from one kernel of a stream to the next, with what the first blocks wait for and the last ones leave idle.
constexpr double library_overhead = 2.5e-6, template_overhead = 2.8e-6;

// What the library does, as far as its times show: large tiles at full rate, small ones below, one a multiprocessor;
// the depth is split between blocks where there are too few of them and what is left is deep enough.
struct LibraryTile {
  double m, n, efficiency;
};
constexpr std::array library_tiles = {LibraryTile{128, 256, 1.0}, LibraryTile{128, 128, 0.95},
                                      LibraryTile{64, 128, 0.55}, LibraryTile{64, 64, 0.5}};
constexpr double least_split_depth = 1024, split_overhead = 0.8e-6;

constexpr double registers_of_multiprocessor = 65536;
constexpr double l2_bytes_per_second = 45e9;  // to each multiprocessor while all of them read
// Elements of fragments that shared memory gives while a warp's tensor core does one multiply-add each, see below.
constexpr double fragments_per_multiply = 0.05;

double shared_bytes(const MatmulTile& tile) { return 2.0 * tile.stages * (tile.m + tile.n) * tile.k; }

double bytes_of(const MatmulSize& size) {
  return 2 * size.batch * (size.m * size.k + size.k * size.n + size.m * size.n);
}

// Blocks that a multiprocessor holds.
double residents(const MatmulTile& tile, const Target& target) {
  const double by_memory = std::floor(static_cast<double>(target.shared_bytes_per_block) / shared_bytes(tile));
  const double by_registers = std::floor(registers_of_multiprocessor / (matmul_threads(tile) * tile.registers));
  return std::max(1.0, std::min(by_memory, by_registers));
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
  return library_overhead + std::max(slowdown * computing, bytes_of(size) / target.bytes_per_second);
}

double template_time(const MatmulSize& size, const MatmulTile& tile, const Target& target) {
  const double blocks = size.batch * std::ceil(size.m / tile.m) * std::ceil(size.n / tile.n);
  const double of_one = std::ceil(blocks / target.multiprocessors);
  const double abreast = std::min(of_one, residents(tile, target));
  // Fewer warps than keep the tensor cores busy; warps whose parts are small wait for shared memory.
  const double warps = abreast * tile.warps_m * tile.warps_n;
  const double busy = warps / (warps + 2.5);
  const double part_m = tile.m / tile.warps_m, part_n = tile.n / tile.warps_n;
  const double fragments = (part_m + part_n) / (part_m * part_n);
  const double slowed = std::max(1.0, fragments / fragments_per_multiply);
  const double rate = target.template_flops / target.multiprocessors * busy / slowed * 1.2;
  const double depth = std::ceil(size.k / tile.k) * tile.k;
  const double computing = of_one * 2 * tile.m * tile.n * depth / rate;
  // Every block reads its rows of both factors from the L2 cache.
  const double streamed = blocks * 2 * (tile.m + tile.n) * depth / (target.multiprocessors * l2_bytes_per_second);
  return template_overhead + std::max({computing, streamed, bytes_of(size) / target.bytes_per_second});
}

const MatmulTile& best_tile(const MatmulSize& size, int kept_bytes, const Target& target) {
  const MatmulTile* best = nullptr;
  double least = 0;
  for (const MatmulTile& tile : matmul_tiles) {
    const int64_t sums = int64_t{kept_bytes} * tile.m * (tile.n + plan::matmul_row_padding);
    if (std::max(static_cast<int64_t>(shared_bytes(tile)), sums) > target.shared_bytes_per_block) continue;
    const double time = template_time(size, tile, target);
    if (best && time >= least) continue;
    best = &tile;
    least = time;
  }
  return *best;
}

}  // namespace cxxinductor::schedule
