#include <cmath>
#include <limits>

#include "interp/difference.h"
#include "interp/interp.h"
#include "support/error.h"

namespace cxxinductor::interp {

double relative_tolerance(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 1e-12;
    case DType::F32:
      return 1e-5;
    case DType::F16:
      return 2e-3;
    case DType::BF16:
      return 1.6e-2;
    case DType::F8E4M3FN:
      return 0.125;
    case DType::F8E5M2:
      return 0.25;
    case DType::I8:
    case DType::I16:
    case DType::I32:
    case DType::I64:
    case DType::U8:
    case DType::U16:
    case DType::U32:
    case DType::U64:
    case DType::Bool:
    case DType::C32:
    case DType::C64:
    case DType::C128:
      return 0;
  }
  return 0;
}

namespace {

double difference(const Scalar& expected, const Scalar& actual, double tolerance) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (expected == actual) return 0;
  if (expected.dtype() != actual.dtype() || !is_float(expected.dtype())) return infinite;
  const double x = expected.real(), y = actual.real();
  if (x == y) return 0.5;  // zeros of different sign
  if (!std::isfinite(x) || !std::isfinite(y)) return infinite;
  return std::fabs(x - y) / (tolerance * (1 + std::fabs(x)));
}

}  // namespace

double compare(const Tensor& expected, const Tensor& actual, double tolerance_scale) {
  if (expected.dtype != actual.dtype || expected.sizes != actual.sizes || expected.elements.size() != actual.elements.size())
    return std::numeric_limits<double>::infinity();
  // Relative, and absolute around zero.
  const double tolerance = relative_tolerance(expected.dtype) * tolerance_scale;
  double worst = 0;
  for (size_t i = 0; i < expected.elements.size(); ++i) worst = std::max(worst, difference(expected.elements[i], actual.elements[i], tolerance));
  return worst;
}

}  // namespace cxxinductor::interp
