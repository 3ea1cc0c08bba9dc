// Columns: a thread takes a strip of neighbouring columns; their states and what is computed once per column are arrays over the strip.
extern "C" __attribute__((visibility("default"))) void /*{{name*/ cxxi_example /*}}*/(void* const* cxxi_buffers,
    const long long* cxxi_symbols, long long cxxi_begin, long long cxxi_end) {
#include "cpu/arguments.h"
  const index cxxi_columns = /*{{columns*/ 1000 /*}}*/;
  const index cxxi_strips = (cxxi_columns + /*{{columns_less_one*/ 31 /*}}*/) / /*{{columns_per_unit*/ 32 /*}}*/;
  for (index cxxi_unit = cxxi_begin; cxxi_unit < cxxi_end; ++cxxi_unit) {
    const index cxxi_strip = cxxi_unit % cxxi_strips * /*{{columns_per_unit*/ 32 /*}}*/;
    const index cxxi_strip_end = cxxi_strip + /*{{columns_per_unit*/ 32 /*}}*/ < cxxi_columns ? cxxi_strip + /*{{columns_per_unit*/ 32 /*}}*/ : cxxi_columns;
    /*{{coordinates*/ /*}}*/
    /*{{for segments*/
    /*{{for states*/
    /*{{for alone*/ cxxi::column_tile_state</*{{state*/ cxxi::max, cxxi::f32 /*}}*/, /*{{width*/ 8 /*}}*/, /*{{columns_per_unit*/ 32 /*}}*/> /*{{r*/ r1 /*}}*/; /*}}*/
    /*{{for put_aside*/ cxxi::long_column_tile_state</*{{state*/ cxxi::sum, cxxi::f32 /*}}*/, /*{{width*/ 8 /*}}*/, /*{{columns_per_unit*/ 32 /*}}*/> /*{{r*/ r2 /*}}*/; /*}}*/
    /*}}*/
    /*{{for arrays*/ alignas(64) /*{{dtype*/ cxxi::f32 /*}}*/::element /*{{w*/ w9 /*}}*/[/*{{columns_per_unit*/ 32 /*}}*/]; /*}}*/
    /*}}*/
    /*{{for segments*/
    {
      // The loops below declare variables of the row, so the body takes them as parameters.
      const auto body = [&](auto cxxi_lanes, index /*{{last*/ x_i0 /*}}*/, index cxxi_group, index cxxi_element/*{{for row*/, index /*{{x*/ x_r0 /*}}*//*}}*/) __attribute__((always_inline)) {
        constexpr int L = decltype(cxxi_lanes)::value;
        /*{{steps*/ r2.template at<L>(cxxi_group).update(cxxi::load<cxxi::f32, L>(p0 + (x_r0 * 1000 + x_i0)), cxxi_element); /*}}*/
        /*{{for checked*/ return true; /*}}*/
      };
      index cxxi_point = 0;
      /*{{for row*/ for (index /*{{x*/ x_r0 /*}}*/ = 0; /*{{x*/ x_r0 /*}}*/ < /*{{extent*/ 64 /*}}*/; ++/*{{x*/ x_r0 /*}}*/) { /*}}*/
        index cxxi_at = cxxi_strip;
        /*{{for vectors*/
        for (index cxxi_group = 0; cxxi_at + /*{{width*/ 8 /*}}*/ <= cxxi_strip_end; cxxi_at += /*{{width*/ 8 /*}}*/, ++cxxi_group) {
          /*{{call*/ body( /*}}*/cxxi::number</*{{width*/ 8 /*}}*/>{}, cxxi_at, cxxi_group, cxxi_point/*{{for row*/, /*{{x*/ x_r0 /*}}*//*}}*//*{{called*/ ); /*}}*/
        }
        /*}}*/
        for (index cxxi_group = 0; cxxi_at < cxxi_strip_end; ++cxxi_at, ++cxxi_group) {
          /*{{call*/ body( /*}}*/cxxi::number<1>{}, cxxi_at, cxxi_group, cxxi_point/*{{for row*/, /*{{x*/ x_r0 /*}}*//*}}*//*{{called*/ ); /*}}*/
          /*{{for vectors*/ CXXI_KEEP_SCALAR; /*}}*/
        }
        /*{{for puts_aside*/
        if ((cxxi_point & /*{{last_of_block*/ 31 /*}}*/) == /*{{last_of_block*/ 31 /*}}*/) {
          /*{{for in_blocks*/ /*{{r*/ r2 /*}}*/.put_aside(cxxi_strip_end - cxxi_strip); /*}}*/
        }
        /*}}*/
        ++cxxi_point;
      /*{{for row*/ } /*}}*/
      /*{{for in_blocks*/ /*{{r*/ r2 /*}}*/.take_all(cxxi_strip_end - cxxi_strip); /*}}*/
    }
    /*}}*/
  }
}
