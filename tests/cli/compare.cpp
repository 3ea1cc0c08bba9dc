// How far `cxxinductor verify` says that tensors are apart.
#include "cli/compare.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "unit/catch.h"

namespace {

using cxxinductor::cli::compare;
using cxxinductor::cli::default_tolerance;
using cxxinductor::cli::Difference;

const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

Difference of_doubles(std::vector<double> expected, std::vector<double> found) { return compare(at::tensor(expected), at::tensor(found)); }

TEST_CASE("differences are relative to the element, and for small ones to the root mean square") {
  const Difference large = of_doubles({3, 4, 0}, {3, 4.5, 0});
  CHECK(large.absolute == 0.5);
  CHECK(large.relative == Approx(0.5 / 4));
  const Difference small = of_doubles({3, 4, 0}, {3, 4, 0.5});
  CHECK(small.relative == Approx(0.5 / std::sqrt(25.0 / 3)));
  CHECK(of_doubles({1, 2}, {1, 2}).relative == 0);
  CHECK(of_doubles({}, {}).relative == 0);
  CHECK(of_doubles({0, 0}, {0, 1e-30}).relative > 1);
}

TEST_CASE("what is not finite equals itself alone") {
  CHECK(of_doubles({nan, infinity, -infinity, 1}, {nan, infinity, -infinity, 1}).relative == 0);
  CHECK(of_doubles({nan, 1}, {1, 1}).relative == infinity);
  CHECK(of_doubles({1, 1}, {nan, 1}).relative == infinity);
  CHECK(of_doubles({infinity, 1}, {-infinity, 1}).relative == infinity);
  CHECK(of_doubles({infinity, 1}, {1e300, 1}).absolute == infinity);
  // Infinities are no scale for the others.
  CHECK(of_doubles({infinity, 1}, {infinity, 2}).relative == Approx(1));
}

TEST_CASE("integers, booleans, half floats and complex numbers") {
  const at::Tensor large = at::full({2}, (int64_t{1} << 53), at::kLong);
  CHECK(compare(large, large).relative == 0);
  CHECK(compare(large, large + 1).relative > default_tolerance(at::kLong));
  CHECK(compare(large.to(at::kBool), large.to(at::kBool).logical_not()).relative > default_tolerance(at::kBool));
  CHECK(compare(at::ones({2}, at::kInt), at::full({2}, 3, at::kInt)).absolute == 2);
  const at::Tensor half = at::full({2}, 0.1, at::kHalf);
  CHECK(compare(half, half * 1.001).relative <= default_tolerance(at::kHalf));
  const at::Tensor numbers = at::complex(at::tensor({1.0, 2.0}), at::tensor({0.0, 3.0}));
  CHECK(compare(numbers, numbers.conj()).absolute == 6);
  CHECK(compare(numbers, numbers).relative == 0);
}

TEST_CASE("tensors of other dtypes and sizes are not compared") {
  CHECK(compare(at::ones({2}), at::ones({2}, at::kDouble)).mismatch == "expected f32[2] on cpu, found f64[2] on cpu");
  CHECK(compare(at::ones({2}), at::ones({2, 1})).mismatch == "expected f32[2] on cpu, found f32[2, 1] on cpu");
}

}  // namespace
