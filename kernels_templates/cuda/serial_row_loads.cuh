// The loads of a row, ahead of the steps that compute it. Part of the template of serial rows.
{
  const cxxi_index /*{{x*/ x_i0 /*}}*/ = cxxi_index(/*{{step*/ 0 /*}}*/) * /*{{rows_per_block*/ 2 /*}}*/ + cxxi_index(cxxi_slot);
  /*{{for may_be_past*/if (/*{{x*/ x_i0 /*}}*/ < /*{{length*/ 64 /*}}*/) /*}}*/{
    /*{{row_loads*/ /*}}*/
    /*{{for item_loads*/
#pragma unroll
    for (int k = 0; k < /*{{items*/ 4 /*}}*/; ++k) {
      const cxxi_uint cxxi_linear = cxxi_lane + k * /*{{threads_per_row*/ 32 /*}}*/;
      /*{{for uneven_items*/if (cxxi_linear < /*{{groups*/ 100u /*}}*/) /*}}*/{
        /*{{coordinates*/ const cxxi_index x_r0 = cxxi_index(cxxi_linear) * 4; /*}}*/
        /*{{lanes*/ const int cxxi_lanes = int(cxxi_min_int(399 - x_r0, 4)); /*}}*/
        /*{{steps*/ n0[k] = cxxi_load_part<4, true>(p0 + (x_i0 * 399 + x_r0), cxxi_lanes); /*}}*/
      }
    }
    /*}}*/
  }
}
