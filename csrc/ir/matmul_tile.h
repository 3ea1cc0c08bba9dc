// Tiles of the matmul template (kernels_templates/cuda/matmul.cuh) from which the scheduler chooses.
#pragma once

#include <array>

namespace cxxinductor {

struct MatmulTile {
  int m, n, k;           // of the product that a block computes, and of a step
  int warps_m, warps_n;  // warps of the tile
  int stages;            // steps in shared memory at a time
  int registers;         // per thread, as ptxas counts them
  // Groups of four warps multiply out of shared memory (kernels_templates/cuda/warpgroup_matmul.cuh): warps_m is four for each, warps_n 1.
  bool warpgroups = false;
};

// Large tiles read less, small ones occupy the device. A warp's part is at least 16 x 16. With one step nothing streams: tiles of two
// stages are enough for such products, and a multiprocessor holds more of them.
inline constexpr std::array matmul_tiles = {
    MatmulTile{128, 256, 32, 2, 4, 3, 242},      MatmulTile{128, 128, 32, 2, 2, 4, 250},       MatmulTile{128, 128, 32, 2, 4, 4, 154},
    MatmulTile{128, 64, 32, 2, 2, 4, 164},       MatmulTile{64, 128, 32, 2, 2, 4, 164},        MatmulTile{64, 64, 64, 2, 2, 4, 122},
    MatmulTile{64, 32, 64, 2, 2, 4, 80},         MatmulTile{32, 64, 64, 2, 2, 4, 80},          MatmulTile{32, 32, 64, 2, 2, 4, 56},
    MatmulTile{64, 64, 32, 2, 2, 2, 64},         MatmulTile{64, 64, 64, 2, 2, 2, 72},          MatmulTile{64, 32, 64, 2, 2, 2, 64},
    MatmulTile{32, 64, 64, 2, 2, 2, 64},         MatmulTile{128, 256, 64, 8, 1, 4, 174, true}, MatmulTile{128, 128, 64, 8, 1, 6, 128, true},
    MatmulTile{64, 128, 64, 4, 1, 4, 128, true}, MatmulTile{64, 64, 64, 4, 1, 5, 72, true},
};

inline int matmul_threads(const MatmulTile& tile) { return 32 * tile.warps_m * tile.warps_n; }

}  // namespace cxxinductor
