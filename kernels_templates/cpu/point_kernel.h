// One point.
extern "C" __attribute__((visibility("default"))) void /*{{name*/ cxxi_example /*}}*/(void* const* cxxi_buffers,
    const long long* cxxi_symbols, long long cxxi_begin, long long cxxi_end) {
#include "cpu/arguments.h"
  const auto body = [&](auto cxxi_lanes) __attribute__((always_inline)) {
    constexpr int L = decltype(cxxi_lanes)::value;
    /*{{steps*/ cxxi::store<cxxi::f32, 1>(p0, cxxi::load<cxxi::f32, 1>(p0)); /*}}*/
    /*{{for checked*/ return true; /*}}*/
  };
  /*{{call*/ body( /*}}*/cxxi::number<1>{}/*{{called*/ ); /*}}*/
}
