// What a kernel reads of its arguments. Part of kernels' templates.
using cxxi::index;
/*{{for buffers*/
/*{{dtype*/ cxxi::f32 /*}}*/::element* const /*{{p*/ p0 /*}}*/ = static_cast</*{{dtype*/ cxxi::f32 /*}}*/::element*>(cxxi_buffers[/*{{number*/ 0 /*}}*/]);
/*}}*/
/*{{for record*/ long long* const cxxi_record = static_cast<long long*>(cxxi_buffers[/*{{number*/ 1 /*}}*/]); /*}}*/
/*{{for symbols*/ const index /*{{symbol*/ s_s0 /*}}*/ = cxxi_symbols[/*{{number*/ 0 /*}}*/]; /*}}*/
