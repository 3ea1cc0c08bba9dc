// The arguments of the launches of a grouped launch (ir/plan/grouped_launch.h), which its kernel takes by value. Part of kernels' templates.
/*{{for grouped*/
struct /*{{table*/ cxxi_table_example /*}}*/ {
  /*{{for arguments*/
  /*{{for is_value*/ struct { alignas(8) /*{{type*/ float /*}}*/ value; } /*{{p*/ p7 /*}}*/[/*{{launches*/ 4 /*}}*/]; /*}}*/
  /*{{for is_address*/ /*{{type*/ const float /*}}*/* /*{{p*/ p8 /*}}*/[/*{{launches*/ 4 /*}}*/]; /*}}*/
  /*}}*/
  /*{{for symbols*/ long long /*{{entry*/ s0 /*}}*/[/*{{launches*/ 4 /*}}*/]; /*}}*/
  unsigned int first[/*{{launches*/ 4 /*}}*/];
};
static_assert(sizeof(/*{{table*/ cxxi_table_example /*}}*/) == /*{{bytes*/ 112 /*}}*/);
/*}}*/
