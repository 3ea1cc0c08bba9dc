#include "interp/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/error.h"

namespace cxxinductor::interp {
namespace {

// |actual - expected|; 0 where they are as good as equal, infinite where no number says how far they are apart.
double error_of(const Scalar& expected, const Scalar& actual) {
  if (expected == actual) return 0;
  if (!is_float(expected.dtype())) return std::max(1.0, std::fabs(expected.as_real() - actual.as_real()));
  const double x = expected.real(), y = actual.real();
  if (x == y) return 0;
  if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<double>::infinity();
  return std::fabs(x - y);
}

bool is_wanted(const MemRef& memref, const std::vector<int64_t>& coords, const std::vector<bool>* only) {
  if (!only) return true;
  int64_t offset = 0;
  for (size_t d = 0; d < coords.size(); ++d) offset += coords[d] * memref.strides[d];
  return (*only)[static_cast<size_t>(offset)];
}

bool is_wrong(const Scalar& expected, double error, Tolerance tolerance) {
  if (error == 0) return false;
  if (!std::isfinite(error)) return true;
  if (!is_float(expected.dtype())) return true;
  return error > tolerance.relative * std::fabs(expected.real()) + tolerance.absolute;
}

}  // namespace

double magnitude(const MemRef& memref, const std::vector<bool>* only) {
  double sum = 0;
  int64_t counted = 0;
  for_each_point(memref.sizes, [&](const std::vector<int64_t>& coords, int64_t) {
    if (!is_wanted(memref, coords, only)) return;
    const double value = read(memref, coords).as_real();
    if (!std::isfinite(value)) return;
    sum += value * value;
    ++counted;
  });
  return counted == 0 ? 0 : std::sqrt(sum / static_cast<double>(counted));
}

Difference find_difference(const MemRef& expected, const MemRef& actual, Tolerance tolerance, const std::vector<bool>* only) {
  CXXI_CHECK(expected.dtype == actual.dtype && expected.sizes == actual.sizes, "windows of different types or sizes");
  Difference found;
  double worst = 0;
  for_each_point(expected.sizes, [&](const std::vector<int64_t>& coords, int64_t) {
    if (!is_wanted(expected, coords, only)) return;
    ++found.compared;
    const Scalar x = read(expected, coords), y = read(actual, coords);
    const double error = error_of(x, y);
    if (!is_wrong(x, error, tolerance)) return;
    ++found.differing;
    if (error <= worst) return;
    worst = error;
    found.coords = coords;
    found.expected = x;
    found.actual = y;
    found.error = error;
  });
  return found;
}

}  // namespace cxxinductor::interp
