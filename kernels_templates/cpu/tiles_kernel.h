// Tiles: loads across memory are transposed into an array on the stack, which the body then reads along its rows.
extern "C" __attribute__((visibility("default"))) void /*{{name*/ cxxi_example /*}}*/(void* const* cxxi_buffers,
    const long long* cxxi_symbols, long long cxxi_begin, long long cxxi_end) {
#include "cpu/arguments.h"
  /*{{for staged*/ alignas(64) /*{{dtype*/ cxxi::f32 /*}}*/::element /*{{w*/ w0 /*}}*/[/*{{elements*/ 256 /*}}*/]; /*}}*/
  const index cxxi_tiles_across = (/*{{extent_across*/ 100 /*}}*/ + /*{{tile_less_one*/ 15 /*}}*/) / /*{{tile*/ 16 /*}}*/;
  const index cxxi_tiles_along = (/*{{extent_along*/ 100 /*}}*/ + /*{{tile_less_one*/ 15 /*}}*/) / /*{{tile*/ 16 /*}}*/;
  for (index cxxi_unit = cxxi_begin; cxxi_unit < cxxi_end; ++cxxi_unit) {
    const index cxxi_strip = cxxi_unit / cxxi_tiles_along;
    /*{{coordinates*/ /*}}*/
    const index cxxi_across = cxxi_strip % cxxi_tiles_across * /*{{tile*/ 16 /*}}*/;
    const index cxxi_across_end = cxxi_across + /*{{tile*/ 16 /*}}*/ < /*{{extent_across*/ 100 /*}}*/ ? cxxi_across + /*{{tile*/ 16 /*}}*/ : /*{{extent_across*/ 100 /*}}*/;
    const index cxxi_along = cxxi_unit % cxxi_tiles_along * /*{{tile*/ 16 /*}}*/;
    const index cxxi_along_end = cxxi_along + /*{{tile*/ 16 /*}}*/ < /*{{extent_along*/ 100 /*}}*/ ? cxxi_along + /*{{tile*/ 16 /*}}*/ : /*{{extent_along*/ 100 /*}}*/;
    {
      const index /*{{across*/ x_i1 /*}}*/ = cxxi_across, /*{{along*/ x_i0 /*}}*/ = cxxi_along;
      /*{{for staged*/
      cxxi::stage</*{{dtype*/ cxxi::f32 /*}}*/, /*{{tile*/ 16 /*}}*/>(/*{{w*/ w0 /*}}*/, /*{{p*/ p0 /*}}*/ + /*{{offset*/ x_i1 * 100 + x_i0 /*}}*/, /*{{step*/ 100 /*}}*/, cxxi_along_end - cxxi_along, cxxi_across_end - cxxi_across);
      /*}}*/
    }
    const auto body = [&](auto cxxi_lanes, index /*{{along*/ x_i0 /*}}*/, index /*{{across*/ x_i1 /*}}*/, index cxxi_element) __attribute__((always_inline)) {
      constexpr int L = decltype(cxxi_lanes)::value;
      /*{{steps*/ cxxi::store<cxxi::f32, L>(p0 + (x_i0 * 100 + x_i1), cxxi::load<cxxi::f32, L>(w0 + cxxi_element)); /*}}*/
      /*{{for checked*/ return true; /*}}*/
    };
    for (index cxxi_t = cxxi_along; cxxi_t < cxxi_along_end; ++cxxi_t) {
      const index cxxi_first = (cxxi_t - cxxi_along) * /*{{tile*/ 16 /*}}*/ - cxxi_across;
      index cxxi_at = cxxi_across;
      /*{{for vectors*/
      for (; cxxi_at + /*{{width*/ 8 /*}}*/ <= cxxi_across_end; cxxi_at += /*{{width*/ 8 /*}}*/) {
        /*{{call*/ body( /*}}*/cxxi::number</*{{width*/ 8 /*}}*/>{}, cxxi_t, cxxi_at, cxxi_first + cxxi_at/*{{called*/ ); /*}}*/
      }
      /*}}*/
      for (; cxxi_at < cxxi_across_end; ++cxxi_at) {
        /*{{call*/ body( /*}}*/cxxi::number<1>{}, cxxi_t, cxxi_at, cxxi_first + cxxi_at/*{{called*/ ); /*}}*/
        /*{{for vectors*/ CXXI_KEEP_SCALAR; /*}}*/
      }
    }
  }
}
