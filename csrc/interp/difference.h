// Where and by how much two memories differ, for checks of kernels that ran. compare (interp.h) is for whole results of
// programs in tests; this one takes a tolerance that fits the kernel and remembers the worst element.
#pragma once

#include "interp/memory.h"

namespace cxxinductor::interp {

// An element is right if |actual - expected| <= relative * |expected| + absolute. Both 0: equal bits but for the sign
// of zeros and the payload of NaN. Not used for integers, which are equal or wrong.
struct Tolerance {
  double relative = 0, absolute = 0;
};

struct Difference {
  int64_t compared = 0, differing = 0;
  // The worst element: its coordinates, both values, |actual - expected|.
  std::vector<int64_t> coords;
  Scalar expected, actual;
  double error = 0;
};

// A few units in the last place of the dtype, as a part of the value; 0 for integers.
double relative_tolerance(DType dtype);
// Root of the mean square of the finite elements; 0 where there are none. only: element offsets to look at; null: all.
double magnitude(const MemRef& memref, const std::vector<bool>* only = nullptr);
// Element by element; windows of equal dtype and sizes. only: as above, offsets in `expected`.
Difference find_difference(const MemRef& expected, const MemRef& actual, Tolerance tolerance, const std::vector<bool>* only = nullptr);

}  // namespace cxxinductor::interp
