// Points in groups: each thread takes some groups, the loads of which it makes first.
#include "cuda/launch_table.cuh"
extern "C" __global__ void __launch_bounds__(/*{{threads*/ 256 /*}}*/) /*{{name*/ cxxi_example /*}}*/(
    /*{{parameters*/ const float* __restrict__ p0, float* __restrict__ p1, const cxxi_table_example cxxi_table /*}}*/) {
#include "cuda/arguments.cuh"
  /*{{for uniform_loads*/ const long long /*{{v*/ v7 /*}}*/ = cxxi_uniform(*(/*{{address*/ (const long long*)(p0) /*}}*/)); /*}}*/
  /*{{for counted*/ const cxxi_uint cxxi_groups = cxxi_uint(/*{{groups*/ 1000 /*}}*/); /*}}*/
  /*{{for ahead*/ /*{{type*/ cxxi_group<float, 4> /*}}*/ /*{{g*/ g0 /*}}*/[/*{{unroll*/ 2 /*}}*/] = {}; /*}}*/
  /*{{for passes*/
  /*{{for single*/
  const cxxi_uint cxxi_linear = cxxi_uint(/*{{block*/ blockIdx.x /*}}*/) * /*{{threads*/ 256 /*}}*/ + threadIdx.x;
  /*}}*/
  /*{{for several*/
#pragma unroll
  for (int u = 0; u < /*{{unroll*/ 2 /*}}*/; ++u) {
    const cxxi_uint cxxi_linear = (cxxi_uint(/*{{block*/ blockIdx.x /*}}*/) * /*{{unroll*/ 2 /*}}*/ + u) * /*{{threads*/ 256 /*}}*/ + threadIdx.x;
  /*}}*/
    /*{{for counted*/if (cxxi_linear < cxxi_groups) /*}}*/{
      /*{{coordinates*/ const cxxi_index x_i0 = cxxi_index(cxxi_linear) * 4; /*}}*/
      /*{{lanes*/ const int cxxi_lanes = int(cxxi_min_int(3997 - x_i0, 4)); /*}}*/
      /*{{steps*/ cxxi_store_part<4, true>(p1 + x_i0, cxxi_load_part<4, true>(p0 + x_i0, cxxi_lanes), cxxi_lanes); /*}}*/
    }
  /*{{for several*/
  }
  /*}}*/
  /*}}*/
}
