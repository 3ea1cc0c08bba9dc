// Kinds of processors: limits of their instructions and what was measured of them, one row each in machines.def. All estimates of time take
// their figures from here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/dtype.h"

namespace cxxinductor {

// Rates are those of one multiprocessor while all of them work, per second; times are in seconds. Members without a value in machines.def are as
// measured on an H200.
struct Machine {
  DeviceType device{};
  std::string_view arch;  // what the names of its architectures begin with

  int64_t shared_bytes_per_block = 0;  // that a block may opt in to
  int64_t registers_per_multiprocessor = 65536;
  double bytes = 0;                   // read from memory plus written
  double bytes_alone = 40e9;          // of one multiprocessor while the others idle
  double l2_bytes = 45e9;             // read from the L2 cache
  double instructions = 128 * 1.6e9;  // lanes times clock
  // Products of large 16-bit matrices: of the vendor's library, of the templates with mma.sync and with wgmma. 0: there are none.
  double library_flops = 0, mma_flops = 0, wgmma_flops = 0;

  double launch = 2.5e-6;     // what a second kernel adds to a first
  double launch_bytes = 8e6;  // the same, as memory that could have been moved
  // Between dependent kernels of a CUDA graph a GPU loses about a microsecond, and a kernel of no work takes two.
  double graph_step = 3e-6;

  // Between two kernels of a stream, including the waits of the first blocks and the idle time of the last ones.
  double library_overhead = 2.5e-6, template_overhead = 2.8e-6;
  double library_split_overhead = 0.8e-6;  // of a product whose depth is split between blocks
  // The library's time for a small product with rows of 2 or 4 bytes' alignment, on the multiprocessor that has it, and the template's from a
  // block's first load to its last store, while others use the memory too (49 x 49 x 32 and 49 x 32 x 49 in batches of 1024 to 8192, on an H100).
  double small_product = 1.1e-6, small_block = 3e-6;
  // Of warp groups: seconds of a step besides its multiplications (barriers, the start of the products), the part of a tile's way to memory
  // during which nothing is multiplied, and the time until all stages are under way, as fitted to times of all tiles.
  double warpgroup_step_overhead = 93e-9, exposed_store = 0.5, warpgroup_start = 2.8e-6;
};

// The row whose arch the name begins with, else that of an unknown processor of the kind, which has no rates.
const Machine& find_machine(DeviceType device, std::string_view arch);

// All of it on one line, for keys of caches.
std::string to_string(const Machine& machine);

}  // namespace cxxinductor
