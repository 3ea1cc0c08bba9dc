// A product with its prologues and its epilogue; the text between marks is an example. Follows matmul.cuh in a unit.
extern "C" __global__ void __launch_bounds__(/*{{threads*/ 128 /*}}*/) /*{{name*/ cxxi_example /*}}*/(
    /*{{parameters*/ const cxxi_bf16* __restrict__ p0, const cxxi_bf16* __restrict__ p1, cxxi_bf16* __restrict__ p2 /*}}*/) {
  /*{{symbols*/ typedef int cxxi_index; typedef unsigned int cxxi_uint; /*}}*/
  using Factor = /*{{factor*/ cxxi_bf16 /*}}*/;
  using Kept = /*{{kept*/ cxxi_bf16 /*}}*/;
  using Tile = /*{{tile*/ cxxi_matmul<Factor, 64, 64, 64, 2, 2, 3, true, true> /*}}*/;
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
  const auto cxxi_left =
      /*{{left*/ cxxi_stored_factor<Factor, cxxi_index, true>{p0, 256, cxxi_rows, cxxi_depth} /*}}*/;
  const auto cxxi_right =
      /*{{right*/ cxxi_stored_factor<Factor, cxxi_index, true>{p1, 256, cxxi_columns, cxxi_depth} /*}}*/;
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
      /*{{epilogue*/ cxxi_store_group<width, true>(p2 + (x_i0 * 512 + x_i1), g5); /*}}*/
    }
  }
}
