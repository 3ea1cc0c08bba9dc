// The segments of a row, of which each thread takes some groups: row loops, and what is computed once per row. Part of the templates of rows.
/*{{for segments*/
/*{{for per_row*/ /*{{steps*/ /*}}*/ /*}}*/
/*{{for row_loop*/
/*{{for reductions*/ /*{{state*/ cxxi_sum<float> /*}}*/ /*{{r*/ r1 /*}}*/ = /*{{state*/ cxxi_sum<float> /*}}*/::start(); /*}}*/
/*{{for packed*/ cxxi_keep_packed(/*{{w*/ w0 /*}}*/); /*}}*/
/*{{for divisors*/ const cxxi_divisor /*{{d*/ d7 /*}}*/ = cxxi_divisor::of(/*{{v*/ 3.0f /*}}*/); /*}}*/
// Groups in registers: all in one loop, or the loads of several first, so that they are in flight together.
/*{{for persistent*/
/*{{for in_turn*/
#pragma unroll
for (int k = 0; k < /*{{items*/ 4 /*}}*/; ++k) /*}}*//*{{for batches*/
#pragma unroll
for (int k0 = 0; k0 < /*{{items*/ 4 /*}}*/; k0 += /*{{batch*/ 2 /*}}*/) /*}}*/{
  /*{{for ahead*/ /*{{type*/ cxxi_group<float, 4> /*}}*/ /*{{g*/ g9 /*}}*/[/*{{batch*/ 2 /*}}*/] = {}; /*}}*/
  /*{{for passes*/
  /*{{for batched*/
#pragma unroll
  for (int u = 0; u < /*{{batch*/ 2 /*}}*/; ++u) {
    const int k = /*{{for batches*/k0 + /*}}*/u;
    /*{{for uneven*/ if (k < /*{{items*/ 4 /*}}*/) { /*}}*/
  /*}}*/
      const cxxi_uint cxxi_linear = /*{{lane*/ cxxi_lane /*}}*//*{{for several_items*/ + k * /*{{threads_per_row*/ 32 /*}}*//*}}*/;
      /*{{for guarded*/if (/*{{for dead_rows*/cxxi_live/*}}*//*{{for both*/ && /*}}*//*{{for counted*/cxxi_linear < /*{{groups*/ 100u /*}}*//*}}*/) /*}}*/{
        /*{{coordinates*/ const cxxi_index x_r0 = cxxi_index(cxxi_linear) * 4; /*}}*/
        /*{{lanes*/ const int cxxi_lanes = int(cxxi_min_int(399 - x_r0, 4)); /*}}*/
        /*{{for positions*/ const long long cxxi_position = /*{{position*/ x_r0 /*}}*/; /*}}*/
        /*{{steps*/ w0[k] = cxxi_load_part<4, true>(p0 + (x_i0 * 399 + x_r0), cxxi_lanes); r1.update(w0[k].get(0), 0); /*}}*/
      }
  /*{{for batched*/
    /*{{for uneven*/ } /*}}*/
  }
  /*}}*/
  /*}}*/
}
/*}}*/
// Groups that each row loop reads again, `unroll` of a thread at a time.
/*{{for looped*/
{
  /*{{for in_blocks*/ cxxi_blocks</*{{state*/ cxxi_sum<float> /*}}*/> /*{{b*/ b1 /*}}*/; /*}}*/
  /*{{for puts_aside*/ unsigned int cxxi_turn = 0u; /*}}*/
  const cxxi_uint cxxi_groups = cxxi_uint(/*{{groups*/ 1000 /*}}*/);
  for (cxxi_uint cxxi_first = /*{{lane*/ cxxi_lane /*}}*/;/*{{for dead_rows*/ cxxi_live &&/*}}*/ cxxi_first < cxxi_groups; cxxi_first += /*{{stride*/ 64 /*}}*/) {
    /*{{for ahead*/ /*{{type*/ cxxi_group<float, 4> /*}}*/ /*{{g*/ g9 /*}}*/[/*{{unroll*/ 2 /*}}*/] = {}; /*}}*/
    /*{{for passes*/
    /*{{for unrolled*/
#pragma unroll
    for (int u = 0; u < /*{{unroll*/ 2 /*}}*/; ++u) {
    /*}}*/
      const cxxi_uint cxxi_linear = cxxi_first/*{{for unrolled*/ + u * /*{{threads_per_row*/ 32 /*}}*//*}}*/;
      /*{{for unrolled*/
      /*{{for counted*/if (cxxi_linear < cxxi_groups) /*}}*/{
      /*}}*/
        /*{{coordinates*/ const cxxi_index x_r0 = cxxi_index(cxxi_linear) * 4; /*}}*/
        /*{{lanes*/ const int cxxi_lanes = int(cxxi_min_int(399 - x_r0, 4)); /*}}*/
        /*{{for positions*/ const long long cxxi_position = /*{{position*/ x_r0 /*}}*/; /*}}*/
        /*{{steps*/ r1.update(cxxi_load_part<4, true>(p0 + (x_i0 * 399 + x_r0), cxxi_lanes).get(0), 0); /*}}*/
    /*{{for unrolled*/
      }
    }
    /*}}*/
    /*}}*/
    /*{{for puts_aside*/
    if (++cxxi_turn % /*{{turns*/ 16u /*}}*/ == 0u) {
      /*{{for in_blocks*/ cxxi_put_aside(/*{{r*/ r1 /*}}*/, /*{{b*/ b1 /*}}*/); /*}}*/
    }
    /*}}*/
  }
  /*{{for in_blocks*/ cxxi_take_all(/*{{r*/ r1 /*}}*/, /*{{b*/ b1 /*}}*/); /*}}*/
}
/*}}*/
// Threads of one row join their states: by shuffles in a warp; warps of a row by shared memory.
/*{{for several_warps*/
// Two serial rows are in progress: threads may write the states of the next one before all have read those of this one.
/*{{for reductions*/
__shared__ /*{{state*/ cxxi_sum<float> /*}}*/ /*{{h*/ h1 /*}}*//*{{for serial*/[2]/*}}*/[/*{{warps*/ 4 /*}}*/];
cxxi_share_row</*{{equal*/ false /*}}*/>(/*{{r*/ r1 /*}}*/, /*{{h*/ h1 /*}}*//*{{for serial*/[cxxi_step & 1]/*}}*/);
/*}}*/
cxxi_sync_block();
/*{{for reductions*/
cxxi_collect_row</*{{threads_per_row*/ 32 /*}}*/, /*{{equal*/ false /*}}*/>(/*{{r*/ r1 /*}}*/, /*{{h*/ h1 /*}}*//*{{for serial*/[cxxi_step & 1]/*}}*/);
/*}}*/
/*}}*/
/*{{for in_warp*/
/*{{for reductions*/ cxxi_block_reduce</*{{threads_per_row*/ 32 /*}}*/, /*{{equal*/ false /*}}*/>(/*{{r*/ r1 /*}}*/); /*}}*/
/*}}*/
/*{{for reductions*/
const /*{{type*/ float /*}}*/ /*{{v*/ v1 /*}}*/ = cxxi_cast</*{{type*/ float /*}}*/>(/*{{r*/ r1 /*}}*/.result<0>());/*{{origin*/  // sum /*}}*/
/*}}*/
/*}}*/
/*}}*/
