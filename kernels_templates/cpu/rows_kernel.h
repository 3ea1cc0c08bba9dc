// Rows: a thread takes one row at a time, whose vectors are dealt out to several states of each reduction.
extern "C" __attribute__((visibility("default"))) void /*{{name*/ cxxi_example /*}}*/(void* const* cxxi_buffers,
    const long long* cxxi_symbols, long long cxxi_begin, long long cxxi_end) {
#include "cpu/arguments.h"
  /*{{for persistent_values*/ alignas(64) /*{{dtype*/ cxxi::f32 /*}}*/::element /*{{w*/ w9 /*}}*/[/*{{length*/ 1000 /*}}*/]; /*}}*/
  for (index cxxi_unit = cxxi_begin; cxxi_unit < cxxi_end; ++cxxi_unit) {
    /*{{coordinates*/ index x_i0 = cxxi_unit; /*}}*/
    /*{{for segments*/
    /*{{for per_row*/ /*{{steps*/ /*}}*/ /*}}*/
    /*{{for row_loop*/
    /*{{for states*/
    /*{{for alone*/ cxxi::row_state</*{{state*/ cxxi::max, cxxi::f32 /*}}*/, /*{{width*/ 8 /*}}*/, /*{{count*/ 5 /*}}*/> /*{{r*/ r1 /*}}*/; /*}}*/
    /*{{for put_aside*/ cxxi::long_row_state</*{{state*/ cxxi::sum, cxxi::f32 /*}}*/, /*{{width*/ 8 /*}}*/, /*{{count*/ 5 /*}}*/> /*{{r*/ r2 /*}}*/; /*}}*/
    /*}}*/
    {
      const auto body = [&](auto cxxi_lanes, auto cxxi_set, index cxxi_element/*{{for outer*/, index /*{{x*/ x_r0 /*}}*//*}}*//*{{for in_pass*/, index /*{{last*/ x_r1 /*}}*//*}}*/) __attribute__((always_inline)) {
        constexpr int L = decltype(cxxi_lanes)::value;
        /*{{steps*/ r2.template at<L, decltype(cxxi_set)::value>().update(cxxi::load<cxxi::f32, L>(p0 + (x_i0 * 1000 + cxxi_element)), 0); /*}}*/
        /*{{for checked*/ return true; /*}}*/
      };
      index cxxi_first = 0;
      // Passes are too short to put states aside in each of them.
      /*{{for counts_updates*/ index cxxi_updates = 0; /*}}*/
      /*{{for outer*/ for (index /*{{x*/ x_r0 /*}}*/ = 0; /*{{x*/ x_r0 /*}}*/ < /*{{extent*/ 4 /*}}*/; ++/*{{x*/ x_r0 /*}}*/) { /*}}*/
        const index cxxi_length = /*{{length_of_pass*/ 250 /*}}*/;
        index cxxi_at = 0;
        /*{{for vectors*/
        /*{{for puts_aside*/
        while (cxxi_at + /*{{step*/ 32 /*}}*/ <= cxxi_length) {
          const index cxxi_stop = cxxi_at + /*{{block*/ 1024 /*}}*/ < cxxi_length ? cxxi_at + /*{{block*/ 1024 /*}}*/ : cxxi_length;
        /*}}*/
          for (; cxxi_at + /*{{step*/ 32 /*}}*/ <= /*{{stop*/ cxxi_stop /*}}*/; cxxi_at += /*{{step*/ 32 /*}}*/) {
            /*{{for sets*/
            /*{{call*/ body( /*}}*/cxxi::number</*{{width*/ 8 /*}}*/>{}, cxxi::number</*{{set*/ 1 /*}}*/>{}, cxxi_first + cxxi_at/*{{for shifted*/ + /*{{offset*/ 8 /*}}*//*}}*//*{{for outer*/, /*{{x*/ x_r0 /*}}*//*}}*//*{{for in_pass*/, cxxi_at/*{{for shifted*/ + /*{{offset*/ 8 /*}}*//*}}*//*}}*//*{{called*/ ); /*}}*/
            /*}}*/
          }
        /*{{for puts_aside*/
          if (cxxi_at + /*{{step*/ 32 /*}}*/ <= cxxi_length) {
            /*{{for in_blocks*/ /*{{r*/ r2 /*}}*/.put_aside(); /*}}*/
          }
        }
        /*}}*/
        // Apart from the long chains.
        /*{{for several_sets*/
        for (; cxxi_at + /*{{width*/ 8 /*}}*/ <= cxxi_length; cxxi_at += /*{{width*/ 8 /*}}*/) {
          /*{{call*/ body( /*}}*/cxxi::number</*{{width*/ 8 /*}}*/>{}, cxxi::number</*{{sets_of_states*/ 4 /*}}*/>{}, cxxi_first + cxxi_at/*{{for outer*/, /*{{x*/ x_r0 /*}}*//*}}*//*{{for in_pass*/, cxxi_at/*}}*//*{{called*/ ); /*}}*/
        }
        /*}}*/
        /*}}*/
        for (; cxxi_at < cxxi_length; ++cxxi_at) {
          /*{{call*/ body( /*}}*/cxxi::number<1>{}, cxxi::number<0>{}, cxxi_first + cxxi_at/*{{for outer*/, /*{{x*/ x_r0 /*}}*//*}}*//*{{for in_pass*/, cxxi_at/*}}*//*{{called*/ ); /*}}*/
          /*{{for vectors*/ CXXI_KEEP_SCALAR; /*}}*/
          /*{{for puts_elements_aside*/
          if ((cxxi_at & /*{{last_of_block*/ 31 /*}}*/) == /*{{last_of_block*/ 31 /*}}*/) {
            /*{{for in_blocks*/ /*{{r*/ r2 /*}}*/.put_aside(); /*}}*/
          }
          /*}}*/
        }
        cxxi_first += cxxi_length;
        /*{{for counts_updates*/
        cxxi_updates += /*{{updates*/ 10 /*}}*/;
        if (cxxi_updates >= /*{{updates_of_block*/ 32 /*}}*/) {
          /*{{for in_blocks*/ /*{{r*/ r2 /*}}*/.put_aside(); /*}}*/
        }
        if (cxxi_updates >= /*{{updates_of_block*/ 32 /*}}*/) cxxi_updates = 0;
        /*}}*/
      /*{{for outer*/ } /*}}*/
    }
    /*{{for states*/
    const auto /*{{t*/ t2 /*}}*/ = /*{{r*/ r2 /*}}*/.joined();
    const auto /*{{v*/ v2 /*}}*/ = /*{{t*/ t2 /*}}*/.result<0>();
    /*}}*/
    /*}}*/
    /*}}*/
  }
}
