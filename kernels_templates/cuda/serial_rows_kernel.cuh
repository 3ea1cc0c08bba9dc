// Serial rows: a block executes the rows of rows_kernel.cuh in a loop, with the loads of the next row in flight. Persistent loads that do not
// vary over the rows are made once, before the loop. Sums across rows are in registers, which the threads of a block join after the loop, or
// in shared memory, where each element has one thread. One block per multiprocessor: its threads need all registers.
#include "cuda/launch_table.cuh"
extern "C" __global__ void __launch_bounds__(/*{{threads*/ 512 /*}}*/, 1) /*{{name*/ cxxi_example /*}}*/(
    /*{{parameters*/ const float* __restrict__ p0, float* __restrict__ p1, const cxxi_table_example cxxi_table /*}}*/) {
#include "cuda/arguments.cuh"
  /*{{for uniform_loads*/ const long long /*{{v*/ v7 /*}}*/ = cxxi_uniform(*(/*{{address*/ (const long long*)(p0) /*}}*/)); /*}}*/
  const cxxi_uint cxxi_lane = threadIdx.x % /*{{threads_per_row*/ 32 /*}}*/, cxxi_slot = threadIdx.x / /*{{threads_per_row*/ 32 /*}}*/;
  const cxxi_uint cxxi_part = cxxi_uint(/*{{block*/ blockIdx.x /*}}*/);
  /*{{part*/ /*}}*/
  /*{{for persistent_values*/ /*{{type*/ cxxi_group<float, 4> /*}}*/ /*{{w*/ w0 /*}}*/[/*{{items*/ 4 /*}}*/] = {}; /*}}*/
#include "cuda/serial_row_sums.cuh"
  /*{{for loads_once*/
#pragma unroll
  for (int k = 0; k < /*{{items*/ 4 /*}}*/; ++k) {
    const cxxi_uint cxxi_linear = cxxi_lane + k * /*{{threads_per_row*/ 32 /*}}*/;
    /*{{for uneven_items*/if (cxxi_linear < /*{{groups*/ 100u /*}}*/) /*}}*/{
      /*{{coordinates*/ const cxxi_index x_r0 = cxxi_index(cxxi_linear) * 4; /*}}*/
      /*{{lanes*/ const int cxxi_lanes = int(cxxi_min_int(399 - x_r0, 4)); /*}}*/
      /*{{steps*/ w0[k] = cxxi_load_part<4, true>(p0 + x_r0, cxxi_lanes); /*}}*/
    }
  }
  /*}}*/
  /*{{for next_items*/ /*{{type*/ cxxi_group<float, 4> /*}}*/ /*{{n*/ n0 /*}}*/[/*{{items*/ 4 /*}}*/] = {}; /*}}*/
  /*{{for next_values*/ /*{{type*/ float /*}}*/ /*{{n*/ n2 /*}}*/ = {}; /*}}*/
  /*{{for first_row*/
#include "cuda/serial_row_loads.cuh"
  /*}}*/
#pragma unroll 1
  for (int cxxi_step = 0; cxxi_step < /*{{steps_of_block*/ 32 /*}}*/; ++cxxi_step) {
    // Else the compiler widens them before the loop, into twice the registers.
    /*{{for packed_once*/ cxxi_keep_packed(/*{{w*/ w0 /*}}*/); /*}}*/
    // What was loaded for the next row is this row's from now on.
    /*{{for next_row*/
    /*{{for next_values*/ const /*{{type*/ float /*}}*/ /*{{v*/ v2 /*}}*/ = /*{{n*/ n2 /*}}*/; /*}}*/
    /*{{for next_items*/
#pragma unroll
    for (int k = 0; k < /*{{items*/ 4 /*}}*/; ++k) /*{{w*/ w0 /*}}*/[k] = /*{{n*/ n0 /*}}*/[k];
    /*}}*/
#include "cuda/serial_row_loads.cuh"
    /*}}*/
    const cxxi_index /*{{x*/ x_i0 /*}}*/ = cxxi_index(cxxi_step) * /*{{rows_per_block*/ 2 /*}}*/ + cxxi_index(cxxi_slot);
    /*{{for dead_rows*/ const bool cxxi_live = /*{{x*/ x_i0 /*}}*/ < /*{{length*/ 64 /*}}*/; /*}}*/
#include "cuda/row_loops.cuh"
  }
  /*{{for epilogues*/
  /*{{for several_rows*/
  __shared__ uint4 /*{{shared*/ cxxi_joined /*}}*/[/*{{chunks*/ 64 /*}}*/];
  /*{{for joined*/
  cxxi_slot_reduce</*{{threads_per_row*/ 32 /*}}*/, /*{{rows_per_block*/ 2 /*}}*/, /*{{room*/ 1 /*}}*/>(/*{{r*/ r5 /*}}*/, /*{{shared*/ cxxi_joined /*}}*/, cxxi_lane, cxxi_slot);
  /*}}*/
  if (cxxi_slot == 0) {
  /*}}*/
#pragma unroll
    for (int k = 0; k < /*{{items*/ 4 /*}}*/; ++k) {
      const cxxi_uint cxxi_linear = cxxi_lane + k * /*{{threads_per_row*/ 32 /*}}*/;
      if (cxxi_linear < /*{{groups*/ 100u /*}}*/) {
        /*{{coordinates*/ const cxxi_index x_r0 = cxxi_index(cxxi_linear) * 4; /*}}*/
        /*{{lanes*/ const int cxxi_lanes = int(cxxi_min_int(399 - x_r0, 4)); /*}}*/
        /*{{steps*/ if (cxxi_lanes > 0) p1[x_r0] = r5[k][0].result<0>(); /*}}*/
      }
    }
  /*{{for several_rows*/
  }
  /*}}*/
  /*}}*/
}
