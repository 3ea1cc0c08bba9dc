// A product with its prologues and its epilogue. Follows matmul.cuh in a unit.
#include "cuda/launch_table.cuh"
extern "C" __global__ void __launch_bounds__(/*{{threads*/ 128 /*}}*/) /*{{name*/ cxxi_example /*}}*/(
    /*{{parameters*/ const cxxi_bf16* __restrict__ p0, const cxxi_bf16* __restrict__ p1, cxxi_bf16* __restrict__ p2, const cxxi_table_example cxxi_table /*}}*/) {
#include "cuda/arguments.cuh"
  using Factor = /*{{factor_type*/ cxxi_bf16 /*}}*/;
  using Kept = /*{{kept_type*/ cxxi_bf16 /*}}*/;
  using Tile = cxxi_matmul<Factor, /*{{tile_m*/ 64 /*}}*/, /*{{tile_n*/ 64 /*}}*/, /*{{tile_k*/ 64 /*}}*/, /*{{warps*/ 2 /*}}*/, /*{{warps_n*/ 2 /*}}*/, /*{{stages*/ 3 /*}}*/, /*{{left_along_k*/ true /*}}*/, /*{{right_along_k*/ true /*}}*/>;
  constexpr int pitch = Tile::tile_n + /*{{padding*/ 8 /*}}*/, width = /*{{width*/ 8 /*}}*/;
  CXXI_DYNAMIC_SHARED(cxxi_shared);
  const cxxi_index cxxi_rows = /*{{rows*/ 512 /*}}*/, cxxi_columns = /*{{columns*/ 512 /*}}*/;
  const cxxi_index cxxi_depth = /*{{depth*/ 256 /*}}*/;
  const cxxi_uint cxxi_tiles_m = cxxi_uint((cxxi_rows + (Tile::tile_m - 1)) / Tile::tile_m);
  const cxxi_uint cxxi_tiles_n = cxxi_uint((cxxi_columns + (Tile::tile_n - 1)) / Tile::tile_n);
  const cxxi_uint cxxi_problem = cxxi_uint(blockIdx.x) / (cxxi_tiles_m * cxxi_tiles_n);
  cxxi_uint cxxi_tile_m, cxxi_tile_n;
  cxxi_tile_of_block</*{{band*/ 8 /*}}*/>(cxxi_uint(blockIdx.x) - cxxi_problem * (cxxi_tiles_m * cxxi_tiles_n), cxxi_tiles_m,
                                          cxxi_tiles_n, cxxi_tile_m, cxxi_tile_n);
  const cxxi_index cxxi_m = cxxi_index(cxxi_tile_m) * Tile::tile_m, cxxi_n = cxxi_index(cxxi_tile_n) * Tile::tile_n;
  /*{{batch*/ /*}}*/
#include "cuda/factors.cuh"
  {
    Tile cxxi_tile;
    cxxi_tile.run(reinterpret_cast<Factor*>(cxxi_shared), cxxi_left, cxxi_right, cxxi_m, cxxi_n, cxxi_depth);
    cxxi_tile.keep<pitch>(reinterpret_cast<Kept*>(cxxi_shared));
  }
  const Kept* const cxxi_kept = reinterpret_cast<const Kept*>(cxxi_shared);
#pragma unroll /*{{unroll*/ 2 /*}}*/
  for (int g = threadIdx.x; g < Tile::tile_m * (Tile::tile_n / width); g += Tile::threads) {
    const int cxxi_row = g / (Tile::tile_n / width), cxxi_column = g % (Tile::tile_n / width) * width;
    const cxxi_index /*{{m*/ x_i0 /*}}*/ = cxxi_m + cxxi_row, /*{{n*/ x_i1 /*}}*/ = cxxi_n + cxxi_column;
    if (cxxi_m + cxxi_row < cxxi_rows && cxxi_n + cxxi_column < cxxi_columns) {
      const cxxi_group<Kept, width> /*{{sums*/ g5 /*}}*/ = cxxi_load_group<width, true>(cxxi_kept + cxxi_row * pitch + cxxi_column);
      /*{{lanes*/ /*}}*/
      /*{{epilogue*/ cxxi_store_group<width, true>(p2 + (x_i0 * 512 + x_i1), g5); /*}}*/
    }
  }
}
