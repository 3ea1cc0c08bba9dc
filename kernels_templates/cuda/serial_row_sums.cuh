// The states of sums across rows at their start: in registers, or in memory that the threads of a block share. Part of the template of serial rows.
/*{{for sums*/
/*{{state*/ cxxi_sum<float> /*}}*/ /*{{r*/ r5 /*}}*/[/*{{items*/ 4 /*}}*/][/*{{width*/ 4 /*}}*/];
#pragma unroll
for (int k = 0; k < /*{{items*/ 4 /*}}*/; ++k) {
#pragma unroll
  for (int e = 0; e < /*{{width*/ 4 /*}}*/; ++e) /*{{r*/ r5 /*}}*/[k][e] = /*{{state*/ cxxi_sum<float> /*}}*/::start();
}
/*}}*/
/*{{for shared_sums*/
CXXI_DYNAMIC_SHARED(cxxi_shared);
/*{{for states*/
const cxxi_shared_states</*{{state*/ cxxi_sum<float> /*}}*/, /*{{width*/ 4 /*}}*/, /*{{all_groups*/ 100 /*}}*/> /*{{s*/ s6 /*}}*/ = {reinterpret_cast<cxxi_shared_states</*{{state*/ cxxi_sum<float> /*}}*/, /*{{width*/ 4 /*}}*/, /*{{all_groups*/ 100 /*}}*/>::chunk*>(cxxi_shared + /*{{offset*/ 0 /*}}*/)};
{
  /*{{state*/ cxxi_sum<float> /*}}*/ /*{{r*/ r6 /*}}*/[/*{{width*/ 4 /*}}*/];
#pragma unroll
  for (int e = 0; e < /*{{width*/ 4 /*}}*/; ++e) /*{{r*/ r6 /*}}*/[e] = /*{{state*/ cxxi_sum<float> /*}}*/::start();
  for (cxxi_uint i = cxxi_lane; i < /*{{groups*/ 100u /*}}*/; i += /*{{threads_per_row*/ 32 /*}}*/) /*{{s*/ s6 /*}}*/.store(/*{{r*/ r6 /*}}*/, i);
}
/*}}*/
/*}}*/
