// Columns: a block takes a strip of neighbouring columns; threads with the same group of columns share its rows.
#include "cuda/launch_table.cuh"
extern "C" __global__ void __launch_bounds__(/*{{threads*/ 256 /*}}*/) /*{{name*/ cxxi_example /*}}*/(
    /*{{parameters*/ const float* __restrict__ p0, float* __restrict__ p1, const cxxi_table_example cxxi_table /*}}*/) {
#include "cuda/arguments.cuh"
  /*{{for uniform_loads*/ const long long /*{{v*/ v7 /*}}*/ = cxxi_uniform(*(/*{{address*/ (const long long*)(p0) /*}}*/)); /*}}*/
  /*{{for several_groups*/ const int cxxi_column = threadIdx.x % /*{{groups*/ 8 /*}}*/; /*}}*/
  const cxxi_uint cxxi_lane = threadIdx.x / /*{{groups*/ 8 /*}}*/;
  const cxxi_index cxxi_strip = cxxi_index(/*{{block*/ blockIdx.x /*}}*//*{{for outer*/ % cxxi_uint(/*{{strips*/ 4 /*}}*/)/*}}*/) * /*{{columns*/ 32 /*}}*/;
  /*{{for outer*/
  const cxxi_uint cxxi_outer = /*{{block*/ blockIdx.x /*}}*/ / cxxi_uint(/*{{strips*/ 4 /*}}*/);
  /*{{coordinates*/ const cxxi_index x_i0 = cxxi_index(cxxi_outer); /*}}*/
  /*}}*/
  // Columns past the end take part in barriers as copies of the first ones that touch nothing.
  /*{{for dead_rows*/
  const bool cxxi_live = cxxi_strip/*{{for several_groups*/ + cxxi_column * /*{{width*/ 4 /*}}*//*}}*/ < /*{{extent*/ 100 /*}}*/;
  /*}}*/
  const cxxi_index /*{{x*/ x_i1 /*}}*/ = /*{{for dead_rows*/cxxi_live ? /*}}*/cxxi_strip/*{{for several_groups*/ + cxxi_column * /*{{width*/ 4 /*}}*//*}}*//*{{for dead_rows*/ : 0/*}}*/;
  /*{{lanes*/ const int cxxi_lanes = int(cxxi_min_int(100 - x_i1, 4)); /*}}*/
  /*{{for shared*/ __shared__ uint4 cxxi_shared[/*{{chunks*/ 1024 /*}}*/]; /*}}*/
  /*{{for segments*/
  // Values with one name for the rest of the kernel.
  /*{{for per_column*/
  /*{{for kept*/ /*{{type*/ float /*}}*/ /*{{w*/ w9 /*}}*/[/*{{width*/ 4 /*}}*/]; /*}}*/
  /*{{steps*/ if (cxxi_lane == 0 && cxxi_live) w9[0] = 0.0f; /*}}*/
  /*}}*/
  /*{{for row_loop*/
  /*{{for reductions*/
  /*{{state*/ cxxi_sum<float> /*}}*/ /*{{r*/ r1 /*}}*/[/*{{lanes_of_state*/ 4 /*}}*/];
  cxxi_accumulator</*{{state*/ cxxi_sum<float> /*}}*/> /*{{a*/ a1 /*}}*/[/*{{lanes_of_state*/ 4 /*}}*/];
  /*}}*/
  {
    /*{{for in_blocks*/ cxxi_blocks</*{{state*/ cxxi_sum<float> /*}}*/> /*{{b*/ b1 /*}}*/[/*{{lanes_of_state*/ 4 /*}}*/]; /*}}*/
    /*{{for puts_aside*/ unsigned int cxxi_turn = 0u; /*}}*/
    const cxxi_uint cxxi_points = cxxi_uint(/*{{points*/ 1000 /*}}*/);
    for (cxxi_uint cxxi_first = cxxi_lane;/*{{for dead_rows*/ cxxi_live &&/*}}*/ cxxi_first < cxxi_points; cxxi_first += /*{{stride*/ 64 /*}}*/) {
      /*{{for ahead*/ /*{{type*/ cxxi_group<float, 4> /*}}*/ /*{{g*/ g0 /*}}*/[/*{{unroll*/ 2 /*}}*/] = {}; /*}}*/
      /*{{for passes*/
      /*{{for unrolled*/
#pragma unroll
      for (int u = 0; u < /*{{unroll*/ 2 /*}}*/; ++u) {
      /*}}*/
        const cxxi_uint cxxi_linear = cxxi_first/*{{for unrolled*/ + u * /*{{threads_per_row*/ 32 /*}}*//*}}*/;
        /*{{for unrolled*/
        if (cxxi_linear < cxxi_points) {
        /*}}*/
          /*{{coordinates*/ const cxxi_index x_r0 = cxxi_index(cxxi_linear); /*}}*/
          /*{{steps*/ a1[0].update(cxxi_load_part<4, true>(p0 + ((x_r0 * 4 + x_i0) * 100 + x_i1), cxxi_lanes).get(0), 0); /*}}*/
      /*{{for unrolled*/
        }
      }
      /*}}*/
      /*}}*/
      /*{{for puts_aside*/
      if (++cxxi_turn % /*{{turns*/ 16u /*}}*/ == 0u) {
        /*{{for in_blocks*/ cxxi_put_aside(/*{{a*/ a1 /*}}*/, /*{{b*/ b1 /*}}*/); /*}}*/
      }
      /*}}*/
    }
    /*{{for reductions*/ cxxi_take_all(/*{{r*/ r1 /*}}*/, /*{{a*/ a1 /*}}*//*{{for put_aside*/, /*{{b*/ b1 /*}}*//*}}*/); /*}}*/
  }
  /*{{for reductions*/
  /*{{for several_threads*/ cxxi_column_reduce</*{{threads_per_row*/ 32 /*}}*/, /*{{groups*/ 8 /*}}*/>(/*{{r*/ r1 /*}}*/, cxxi_shared); /*}}*/
  /*{{for of_lanes*/
  /*{{type*/ float /*}}*/ /*{{w*/ w1 /*}}*/[/*{{width*/ 4 /*}}*/];
#pragma unroll
  for (int e = 0; e < /*{{width*/ 4 /*}}*/; ++e) /*{{w*/ w1 /*}}*/[e] = cxxi_cast</*{{type*/ float /*}}*/>(/*{{r*/ r1 /*}}*/[e].result<0>());
  /*}}*/
  /*{{for of_group*/ const /*{{type*/ float /*}}*/ /*{{v*/ v1 /*}}*/ = cxxi_cast</*{{type*/ float /*}}*/>(/*{{r*/ r1 /*}}*/[0].result<0>()); /*}}*/
  /*}}*/
  /*}}*/
  /*}}*/
}
