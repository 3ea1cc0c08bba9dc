// The factors of a product, cxxi_left and cxxi_right: stored as they are, or computed in groups. Part of the templates of products.
/*{{for factors*/
/*{{for stored*/
const auto /*{{factor*/ cxxi_left /*}}*/ = cxxi_stored_factor<Factor, cxxi_index, /*{{vectorized*/ true /*}}*/>{/*{{p*/ p0 /*}}*/ + /*{{start*/ 0 /*}}*/, /*{{stride*/ 256 /*}}*/, /*{{outer*/ cxxi_rows /*}}*/, /*{{inner*/ cxxi_depth /*}}*/};
/*}}*/
/*{{for computed*/
const auto /*{{factor*/ cxxi_right /*}}*/ = cxxi_compute_factor<Factor, cxxi_index>([&](const cxxi_index /*{{x_outer*/ x_i1 /*}}*/, const cxxi_index /*{{x_inner*/ x_r0 /*}}*/, const int cxxi_lanes) {
  /*{{steps*/ Factor l1[8]; for (int e = 0; e < 8; ++e) l1[e] = e < cxxi_lanes ? p1[x_i1 * 256 + x_r0 + e] : Factor{}; /*}}*/
  cxxi_group<Factor, /*{{width*/ 8 /*}}*/> cxxi_made = {};
#pragma unroll
  for (int e = 0; e < /*{{width*/ 8 /*}}*/; ++e) cxxi_made.set(e, /*{{value*/ l1 /*}}*/[e]);
  return cxxi_made;
}, /*{{outer*/ cxxi_columns /*}}*/, /*{{inner*/ cxxi_depth /*}}*/);
/*}}*/
/*}}*/
