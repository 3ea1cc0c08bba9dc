// Pointwise: one range of points, in runs along the innermost variable.
extern "C" __attribute__((visibility("default"))) void /*{{name*/ cxxi_example /*}}*/(void* const* cxxi_buffers,
    const long long* cxxi_symbols, long long cxxi_begin, long long cxxi_end) {
#include "cpu/arguments.h"
  const index cxxi_points = /*{{extent*/ 4 /*}}*//*{{for further*/ * /*{{extent*/ 1000 /*}}*//*}}*/;
  index cxxi_point = cxxi_begin * /*{{chunk*/ 1024 /*}}*/;
  const index cxxi_stop = cxxi_end * /*{{chunk*/ 1024 /*}}*/ < cxxi_points ? cxxi_end * /*{{chunk*/ 1024 /*}}*/ : cxxi_points;
  if (cxxi_point >= cxxi_stop) return;
  /*{{coordinates*/ index x_i0 = cxxi_point / 3000, x_i1 = cxxi_point / 1000 % 3, x_i2 = cxxi_point % 1000; /*}}*/
  const auto body = [&](auto cxxi_lanes, index /*{{last*/ x_i2 /*}}*/) __attribute__((always_inline)) {
    constexpr int L = decltype(cxxi_lanes)::value;
    /*{{steps*/ const index at = (x_i0 * 3 + x_i1) * 1000 + x_i2; cxxi::store<cxxi::f32, L>(p0 + at, cxxi::load<cxxi::f32, L>(p0 + at)); /*}}*/
    /*{{for checked*/ return true; /*}}*/
  };
  index cxxi_at = /*{{last*/ x_i2 /*}}*/;
  while (true) {
    // To the end of the chunk or of the innermost variable's range, or to the next cut.
    const index cxxi_left = /*{{columns*/ 1000 /*}}*/ - cxxi_at;
    index cxxi_run = cxxi_stop - cxxi_point < cxxi_left ? cxxi_stop - cxxi_point : cxxi_left;
    /*{{for cuts*/ cxxi_run = cxxi::up_to(cxxi_run, /*{{cut*/ 500 /*}}*/ - cxxi_at); /*}}*/
    const index cxxi_run_end = cxxi_at + cxxi_run;
    /*{{for vectors*/
    for (; cxxi_at + /*{{width*/ 8 /*}}*/ <= cxxi_run_end; cxxi_at += /*{{width*/ 8 /*}}*/) {
      /*{{call*/ body( /*}}*/cxxi::number</*{{width*/ 8 /*}}*/>{}, cxxi_at/*{{called*/ ); /*}}*/
    }
    /*}}*/
    for (; cxxi_at < cxxi_run_end; ++cxxi_at) {
      /*{{call*/ body( /*}}*/cxxi::number<1>{}, cxxi_at/*{{called*/ ); /*}}*/
      /*{{for vectors*/ CXXI_KEEP_SCALAR; /*}}*/
    }
    cxxi_point += cxxi_run;
    if (cxxi_point >= cxxi_stop) break;
    /*{{for is_cut*/ if (cxxi_at < /*{{columns*/ 1000 /*}}*/) continue; /*}}*/
    cxxi_at = 0;
    // The next point of the outer variables.
    /*{{for inner*/
    if (++/*{{x*/ x_i1 /*}}*/ == /*{{extent*/ 3 /*}}*/) {
      /*{{x*/ x_i1 /*}}*/ = 0;
    /*}}*/
      /*{{for outermost*/ ++/*{{x*/ x_i0 /*}}*/; /*}}*/
    /*{{for inner*/
    }
    /*}}*/
  }
}
