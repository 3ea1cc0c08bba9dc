#include "kernels/matmul/cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ir/matmul_rows.h"
#include "ir/plan/matmul.h"

namespace cxxinductor::kernels {
namespace {

// A model of the library, fitted to its times: large tiles run at full rate, small ones below, one per multiprocessor. The
// depth is split between blocks if they are too few and the pieces stay deep enough.
struct LibraryTile {
  double m, n, efficiency;
};
constexpr std::array library_tiles = {LibraryTile{128, 256, 1.0}, LibraryTile{128, 128, 0.95}, LibraryTile{64, 128, 0.55}, LibraryTile{64, 64, 0.5}};
constexpr double least_split_depth = 1024;

// Elements of fragments that shared memory gives while a warp's tensor core does one multiply-add each, see below.
constexpr double fragments_per_multiply = 0.05;

bool is_small(const MatmulSize& size) { return std::max({size.m, size.n, size.k}) <= static_cast<double>(small_product_extent); }

double bytes_of(const MatmulSize& size) { return 2 * size.batch * (size.m * size.k + size.k * size.n + size.m * size.n); }

// The template's arithmetic on the multiprocessor with the most blocks.
double warps_time(const MatmulSize& size, const MatmulTile& tile, const Target& target) {
  const double blocks = size.batch * std::ceil(size.m / tile.m) * std::ceil(size.n / tile.n);
  const double of_one = std::ceil(blocks / target.multiprocessors);
  const double abreast = std::min(of_one, static_cast<double>(blocks_per_multiprocessor(tile, target)));
  // Fewer warps than keep the tensor cores busy; warps whose parts are small wait for shared memory.
  const double warps = abreast * tile.warps_m * tile.warps_n;
  const double busy = warps / (warps + 2.5);
  const double part_m = tile.m / tile.warps_m, part_n = tile.n / tile.warps_n;
  const double fragments = (part_m + part_n) / (part_m * part_n);
  const double slowed = std::max(1.0, fragments / fragments_per_multiply);
  const double rate = target.machine.mma_flops * busy / slowed * 1.2;
  const double depth = std::ceil(size.k / tile.k) * tile.k;
  // Every block reads its rows of both factors from the L2 cache.
  const double streamed = blocks * 2 * (tile.m + tile.n) * depth / (target.multiprocessors * target.machine.l2_bytes);
  const double waiting = is_small(size) ? (std::ceil(of_one / blocks_per_multiprocessor(tile, target)) - 1) * target.machine.small_block : 0;
  return std::max({of_one * 2 * tile.m * tile.n * depth / rate, streamed, waiting});
}

double warpgroups_time(const MatmulSize& size, const MatmulTile& tile, const Target& target) {
  const double tiles = size.batch * std::ceil(size.m / tile.m) * std::ceil(size.n / tile.n);
  const Machine& machine = target.machine;
  const double rate = target.warpgroup_flops();
  const double step = machine.warpgroup_step_overhead + 2.0 * tile.m * tile.n * tile.k / rate;
  const double of_one = std::ceil(tiles / target.multiprocessors);
  return machine.warpgroup_start + of_one * (std::ceil(size.k / tile.k) * step + machine.exposed_store * 2 * tile.m * tile.n / machine.bytes);
}

}  // namespace

double library_time(const MatmulSize& size, const Target& target, double slowdown) {
  const Machine& machine = target.machine;
  const double rate = machine.library_flops;
  double computing = std::numeric_limits<double>::infinity();
  for (const LibraryTile& tile : library_tiles) {
    const double blocks = size.batch * std::ceil(size.m / tile.m) * std::ceil(size.n / tile.n);
    for (double pieces = 1;; pieces *= 2) {
      if (pieces > 1 && (size.k / pieces < least_split_depth || blocks * pieces > target.multiprocessors)) break;
      const double waves = std::ceil(blocks * pieces / target.multiprocessors);
      const double time = waves * 2 * tile.m * tile.n * size.k / pieces / (rate * tile.efficiency);
      computing = std::min(computing, time + (pieces > 1 ? machine.library_split_overhead : 0));
    }
  }
  computing *= slowdown;
  if (slowdown >= unaligned_slowdown(4) && is_small(size)) computing = std::max(computing, size.batch / target.multiprocessors * machine.small_product);
  return machine.library_overhead + std::max(computing, bytes_of(size) / target.bytes_per_second());
}

int blocks_per_multiprocessor(const MatmulTile& tile, const Target& target) {
  const int64_t by_memory = target.machine.shared_bytes_per_block / plan::matmul_shared_bytes(tile, 2);
  const int64_t by_registers = target.machine.registers_per_multiprocessor / (matmul_threads(tile) * tile.registers);
  return static_cast<int>(std::max(int64_t{1}, std::min(by_memory, by_registers)));
}

double template_time(const MatmulSize& size, const MatmulTile& tile, const Target& target) {
  const double computing = tile.warpgroups ? warpgroups_time(size, tile, target) : warps_time(size, tile, target);
  return target.machine.template_overhead + std::max(computing, bytes_of(size) / target.bytes_per_second());
}

const MatmulTile& best_tile(const MatmulSize& size, int kept_bytes, const Target& target) {
  const MatmulTile* best = nullptr;
  double least = 0;
  for (const MatmulTile& tile : matmul_tiles) {
    if (tile.warpgroups && target.warpgroup_flops() == 0) continue;
    if (tile.stages == 2 && size.k > tile.k) continue;
    if (plan::matmul_shared_bytes(tile, kept_bytes) > target.machine.shared_bytes_per_block) continue;
    const double time = template_time(size, tile, target);
    if (best && time >= least) continue;
    best = &tile;
    least = time;
  }
  return *best;
}

}  // namespace cxxinductor::kernels
