// A product by warp groups with its prologues and its epilogue. Follows warpgroup_matmul.cuh in a unit.
#include "cuda/launch_table.cuh"
extern "C" __global__ void __launch_bounds__(/*{{threads*/ 256 /*}}*/) /*{{name*/ cxxi_example /*}}*/(
    /*{{parameters*/ const cxxi_bf16* __restrict__ p0, const cxxi_bf16* __restrict__ p1, cxxi_bf16* __restrict__ p2, const cxxi_table_example cxxi_table /*}}*/) {
#include "cuda/arguments.cuh"
  using Factor = /*{{factor_type*/ cxxi_bf16 /*}}*/;
  using Kept = /*{{kept_type*/ cxxi_bf16 /*}}*/;
  using Tile = cxxi_warpgroup_matmul<Factor, /*{{tile_m*/ 128 /*}}*/, /*{{tile_n*/ 256 /*}}*/, /*{{tile_k*/ 64 /*}}*/, /*{{warps*/ 2 /*}}*/, /*{{stages*/ 4 /*}}*/, /*{{left_along_k*/ true /*}}*/, /*{{right_along_k*/ true /*}}*/>;
  using Parts = cxxi_sum_parts<Tile, Kept>;
  constexpr int width = /*{{width*/ 8 /*}}*/, groups = Parts::columns / width;
  CXXI_DYNAMIC_SHARED(cxxi_shared);
  Factor* const cxxi_stages = reinterpret_cast<Factor*>(cxxi_shared);
  const cxxi_index cxxi_rows = /*{{rows*/ 512 /*}}*/, cxxi_columns = /*{{columns*/ 512 /*}}*/;
  const cxxi_index cxxi_depth = /*{{depth*/ 256 /*}}*/;
  const cxxi_uint cxxi_problems = /*{{for alone*/1/*}}*//*{{for batch_extents*//*{{for further*/ * /*}}*/cxxi_uint(/*{{extent*/ 3 /*}}*/)/*}}*/;
  cxxi_tile_cursor<Tile, /*{{band*/ 8 /*}}*/, cxxi_index, cxxi_uint> cxxi_at(cxxi_rows, cxxi_columns, cxxi_problems), cxxi_ahead = cxxi_at;
  cxxi_index cxxi_next_k = 0;  // of the tile ahead
  const auto cxxi_fill_next = [&](Factor* stage) {
    if (!cxxi_ahead.more()) return;
    const cxxi_uint cxxi_problem = cxxi_ahead.problem;
    /*{{batch*/ /*}}*/
#include "cuda/factors.cuh"
    Tile::fill(stage, cxxi_left, cxxi_right, cxxi_ahead.m, cxxi_ahead.n, cxxi_next_k);
    cxxi_next_k += Tile::tile_k;
    if (cxxi_next_k < cxxi_depth) return;
    cxxi_next_k = 0;
    cxxi_ahead.next();
  };
  Tile cxxi_tile(cxxi_stages, cxxi_fill_next);
  for (; cxxi_at.more(); cxxi_at.next()) {
    cxxi_tile.run(cxxi_depth, cxxi_fill_next);
    const cxxi_uint cxxi_problem = cxxi_at.problem;
    /*{{batch*/ /*}}*/
#pragma unroll 1
    for (int part = 0; part < Parts::count; ++part) {
      const Kept* const cxxi_kept = Parts::keep(cxxi_tile, cxxi_stages, part);
#pragma unroll /*{{unroll*/ 2 /*}}*/
      for (int g = threadIdx.x % 32; g < Parts::rows * groups; g += 32) {
        const int cxxi_row = g / groups, cxxi_column = g % groups * width;
        const cxxi_index /*{{m*/ x_i0 /*}}*/ = cxxi_at.m + Parts::row_of(part) + cxxi_row;
        const cxxi_index /*{{n*/ x_i1 /*}}*/ = cxxi_at.n + Parts::column_of(part) + cxxi_column;
        if (/*{{m*/ x_i0 /*}}*/ < cxxi_rows && /*{{n*/ x_i1 /*}}*/ < cxxi_columns) {
          const cxxi_group<Kept, width> /*{{sums*/ g5 /*}}*/ = cxxi_load_group<width, true>(cxxi_kept + cxxi_row * Parts::pitch + cxxi_column);
          /*{{lanes*/ /*}}*/
          /*{{epilogue*/ cxxi_store_group<width, true>(p2 + (x_i0 * 512 + x_i1), g5); /*}}*/
        }
      }
    }
  }
}
