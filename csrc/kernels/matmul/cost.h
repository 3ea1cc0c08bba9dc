// Estimated seconds of a matrix product: by the vendor's library, and by the template with a given tile.
//
// The estimates order candidates and compare library with template. The library's is a fit to times of cuBLAS on an H200
// (1024 to 4096 squared, and shapes of transformers); test_kernels "time of every tile beside its estimate" prints the
// template's.
#pragma once

#include "ir/matmul_tile.h"
#include "ir/target.h"

namespace cxxinductor::kernels {

struct MatmulSize {
  double batch, m, n, k;
};

// Extents of m, n and k of a small product: one tile at most.
inline constexpr int64_t small_product_extent = 64;

// slowdown: of its arithmetic, for rows that are not aligned (ir/matmul_rows.h).
double library_time(const MatmulSize& size, const Target& target, double slowdown = 1);
double template_time(const MatmulSize& size, const MatmulTile& tile, const Target& target);
// Blocks that a multiprocessor holds.
int blocks_per_multiprocessor(const MatmulTile& tile, const Target& target);
// The tile with the least template_time among those whose shared memory (with sums of `kept_bytes` each) a block has.
const MatmulTile& best_tile(const MatmulSize& size, int kept_bytes, const Target& target);

}  // namespace cxxinductor::kernels
