// Rows: several threads share a row, keep its values in registers across row loops, and join their reductions.
#include "cuda/launch_table.cuh"
extern "C" __global__ void __launch_bounds__(/*{{threads*/ 128 /*}}*/) /*{{name*/ cxxi_example /*}}*/(
    /*{{parameters*/ const float* __restrict__ p0, float* __restrict__ p1, const cxxi_table_example cxxi_table /*}}*/) {
#include "cuda/arguments.cuh"
  /*{{for uniform_loads*/ const long long /*{{v*/ v7 /*}}*/ = cxxi_uniform(*(/*{{address*/ (const long long*)(p0) /*}}*/)); /*}}*/
  /*{{for several_threads*/ const cxxi_uint cxxi_lane = threadIdx.x % /*{{threads_per_row*/ 32 /*}}*/; /*}}*/
  // A row past the end takes part in barriers as a copy of the last one that touches nothing.
  /*{{for dead_rows*/ const cxxi_uint cxxi_rows = cxxi_uint(/*{{rows*/ 100 /*}}*/); /*}}*/
  /*{{for numbered*/
  const cxxi_uint /*{{place*/ cxxi_place /*}}*/ = cxxi_uint(/*{{block*/ blockIdx.x /*}}*/)/*{{for several_rows*/ * /*{{rows_per_block*/ 4 /*}}*/ + threadIdx.x / /*{{threads_per_row*/ 32 /*}}*//*}}*/;
  /*}}*/
  /*{{for dead_rows*/
  const bool cxxi_live = cxxi_place < cxxi_rows;
  const cxxi_uint cxxi_row = cxxi_live ? cxxi_place : cxxi_rows - 1;
  /*}}*/
  /*{{row*/ const cxxi_index x_i0 = cxxi_index(cxxi_row); const int cxxi_step = 0; /*}}*/
  /*{{for counts_groups*/ const cxxi_uint cxxi_groups = cxxi_uint(/*{{groups*/ 100 /*}}*/); /*}}*/
  /*{{for persistent_values*/ /*{{type*/ cxxi_group<float, 4> /*}}*/ /*{{w*/ w0 /*}}*/[/*{{items*/ 4 /*}}*/] = {}; /*}}*/
#include "cuda/row_loops.cuh"
}
