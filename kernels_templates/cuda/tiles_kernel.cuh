// Tiles: loads that are contiguous along another variable than the stores pass through shared memory. Both ways a thread moves groups of
// `width` elements: it reads `width` of them side by side, transposes the square in registers, and puts down groups along the other variable.
// ir/plan/tile_layout.h says where.
#include "cuda/launch_table.cuh"
extern "C" __global__ void __launch_bounds__(/*{{threads*/ 64 /*}}*/) /*{{name*/ cxxi_example /*}}*/(
    /*{{parameters*/ const float* __restrict__ p0, float* __restrict__ p1, const cxxi_table_example cxxi_table /*}}*/) {
#include "cuda/arguments.cuh"
  /*{{for uniform_loads*/ const long long /*{{v*/ v7 /*}}*/ = cxxi_uniform(*(/*{{address*/ (const long long*)(p0) /*}}*/)); /*}}*/
  /*{{for staged*/ __shared__ cxxi_group</*{{type*/ float /*}}*/, /*{{width*/ 4 /*}}*/> /*{{t*/ t0 /*}}*/[/*{{tile*/ 32 /*}}*/][/*{{pitch*/ 9 /*}}*/]; /*}}*/
  const int cxxi_x = threadIdx.x % /*{{groups*/ 8 /*}}*/, cxxi_y = threadIdx.x / /*{{groups*/ 8 /*}}*/;
  const cxxi_uint cxxi_strip = /*{{block*/ blockIdx.x /*}}*/ / cxxi_uint(/*{{tiles_across*/ 4 /*}}*/);
  const cxxi_index cxxi_across = cxxi_index(/*{{block*/ blockIdx.x /*}}*/ % cxxi_uint(/*{{tiles_across*/ 4 /*}}*/)) * /*{{tile*/ 32 /*}}*/;
  const cxxi_index cxxi_along = cxxi_index(cxxi_strip % cxxi_uint(/*{{tiles_along*/ 4 /*}}*/)) * /*{{tile*/ 32 /*}}*/;
  /*{{for outer*/
  const cxxi_uint cxxi_outer = cxxi_strip / cxxi_uint(/*{{tiles_along*/ 4 /*}}*/);
  /*{{coordinates*/ const cxxi_index x_i0 = cxxi_index(cxxi_outer); /*}}*/
  /*}}*/
  // A tile without edges needs no tests of its bounds, so that its accesses differ in constants alone and all of a thread's loads are under way
  // at once.
  /*{{for cut*/
  if (/*{{extent_across*/ 100 /*}}*/ - cxxi_across >= /*{{tile*/ 32 /*}}*/ && /*{{extent_along*/ 100 /*}}*/ - cxxi_along >= /*{{tile*/ 32 /*}}*/) {
  /*}}*/
  /*{{for tiles*/
  /*{{for edges*/
  } else {
  /*}}*/
    // Squares of width x width elements, all of a thread's before it puts one down. Other loads are under way beside them, where the plan has
    // registers for them.
    /*{{for staged*/ cxxi_group</*{{type*/ float /*}}*/, /*{{width*/ 4 /*}}*/> /*{{m*/ m0 /*}}*/[/*{{squares*/ 1 /*}}*/][/*{{width*/ 4 /*}}*/] = {}; /*}}*/
#pragma unroll
    for (int u = 0; u < /*{{squares*/ 1 /*}}*/; ++u) {
      const cxxi_index /*{{along*/ x_i1 /*}}*/ = cxxi_along + cxxi_x * /*{{width*/ 4 /*}}*/, cxxi_first = cxxi_across + (cxxi_y + u * /*{{abreast*/ 8 /*}}*/) * /*{{width*/ 4 /*}}*/;
      /*{{for edges*/
      if (/*{{along*/ x_i1 /*}}*/ < /*{{extent_along*/ 100 /*}}*/ && cxxi_first < /*{{extent_across*/ 100 /*}}*/) {
      /*}}*/
#pragma unroll
        for (int r = 0; r < /*{{width*/ 4 /*}}*/; ++r) {
          const cxxi_index /*{{across*/ x_i2 /*}}*/ = cxxi_first + r;
          /*{{for staged*/ /*{{m*/ m0 /*}}*/[u][r] = cxxi_load_group</*{{width*/ 4 /*}}*/, /*{{vectorized*/ true /*}}*/>(/*{{address*/ p0 + (x_i2 * 100 + x_i1) /*}}*/); /*}}*/
        }
      /*{{for edges*/
      }
      /*}}*/
    }
    /*{{for ahead*/ /*{{type*/ cxxi_group<float, 4> /*}}*/ /*{{g*/ g9 /*}}*/[/*{{turns*/ 4 /*}}*/] = {}; /*}}*/
    /*{{for passes*/
    /*{{for puts_down*/
#pragma unroll
    for (int u = 0; u < /*{{squares*/ 1 /*}}*/; ++u) {
      /*{{for staged*/ cxxi_transpose(/*{{m*/ m0 /*}}*/[u]); /*}}*/
#pragma unroll
      for (int r = 0; r < /*{{width*/ 4 /*}}*/; ++r) {
        /*{{for staged*/ /*{{t*/ t0 /*}}*/[r * /*{{groups*/ 8 /*}}*/ + cxxi_x][cxxi_y + u * /*{{abreast*/ 8 /*}}*/] = /*{{m*/ m0 /*}}*/[u][r]; /*}}*/
      }
    }
    cxxi_sync_block();
    /*}}*/
    // The groups of a thread, along the last variable of space.
#pragma unroll
    for (int u = 0; u < /*{{turns*/ 4 /*}}*/; ++u) {
      const int cxxi_row = cxxi_y + u * /*{{rows_of_turn*/ 8 /*}}*/;
      const cxxi_index /*{{across*/ x_i2 /*}}*/ = cxxi_across + cxxi_x * /*{{width*/ 4 /*}}*/, /*{{along*/ x_i1 /*}}*/ = cxxi_along + cxxi_row;
      /*{{for edges*/if (/*{{across*/ x_i2 /*}}*/ < /*{{extent_across*/ 100 /*}}*/ && /*{{along*/ x_i1 /*}}*/ < /*{{extent_along*/ 100 /*}}*/) /*}}*/{
        /*{{steps*/ cxxi_store_group<4, true>(p1 + (x_i1 * 100 + x_i2), t0[cxxi_row % 4 * 8 + cxxi_row / 4][cxxi_x]); /*}}*/
      }
    }
    /*}}*/
  /*}}*/
  /*{{for cut*/
  }
  /*}}*/
}
