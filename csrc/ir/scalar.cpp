#include "ir/scalar.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "support/error.h"

namespace cxxinductor {
namespace {

// Nearest even to a format of `mantissa` stored bits whose smallest normal exponent is `min_exponent` and whose largest
// finite value is `largest`; beyond it infinity, or NaN where the format has no infinity.
double round_to_format(double value, int mantissa, int min_exponent, double largest, bool has_infinity) {
  if (std::isnan(value) || value == 0) return value;
  if (std::isinf(value)) return has_infinity ? value : std::copysign(std::numeric_limits<double>::quiet_NaN(), value);
  int exponent;
  std::frexp(value, &exponent);  // value = m * 2^exponent, m in [0.5, 1)
  const int quantum = std::max(exponent - 1, min_exponent) - mantissa;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  if (std::fabs(rounded) > largest)
    return has_infinity ? std::copysign(std::numeric_limits<double>::infinity(), value)
                        : std::copysign(std::numeric_limits<double>::quiet_NaN(), value);
  return rounded;
}

int64_t wrap(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::I8:
      return static_cast<int8_t>(value);
    case DType::I16:
      return static_cast<int16_t>(value);
    case DType::I32:
      return static_cast<int32_t>(value);
    case DType::U8:
      return static_cast<uint8_t>(value);
    case DType::U16:
      return static_cast<uint16_t>(value);
    case DType::U32:
      return static_cast<uint32_t>(value);
    case DType::Bool:
      return value != 0;
    default:
      return value;
  }
}

// As a C cast on this family of machines where C leaves it open: out of range gives the smallest int64.
int64_t truncate(double value) {
  if (std::isnan(value) || value >= 9223372036854775808.0 || value < -9223372036854775808.0)
    return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

}  // namespace

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::F64:
      return value;
    case DType::F32:
      return static_cast<float>(value);
    case DType::F16:
      return round_to_format(static_cast<float>(value), 10, -14, 65504.0, true);
    case DType::BF16:
      return round_to_format(static_cast<float>(value), 7, -126, 3.3895313892515355e38, true);
    case DType::F8E4M3FN:
      return round_to_format(static_cast<float>(value), 3, -6, 448.0, false);
    case DType::F8E5M2:
      return round_to_format(static_cast<float>(value), 2, -14, 57344.0, true);
    default:
      throw_internal("{} is no float dtype", to_string(dtype));
  }
}

Scalar Scalar::from_real(DType dtype, double value) {
  Scalar s;
  s.dtype_ = dtype;
  if (is_float(dtype))
    s.real_ = round_to(dtype, value);
  else if (dtype == DType::Bool)
    s.integer_ = value != 0;
  else if (dtype == DType::U64 && value >= 9223372036854775808.0)
    s.integer_ = static_cast<int64_t>(static_cast<uint64_t>(value));
  else
    s.integer_ = wrap(dtype, truncate(value));
  return s;
}

Scalar Scalar::from_integer(DType dtype, int64_t value) {
  Scalar s;
  s.dtype_ = dtype;
  if (dtype == DType::F32)
    s.real_ = static_cast<float>(value);
  else if (is_float(dtype))
    s.real_ = round_to(dtype, dtype == DType::F64 ? static_cast<double>(value) : static_cast<float>(value));
  else
    s.integer_ = wrap(dtype, value);
  return s;
}

double Scalar::as_real() const {
  if (is_float(dtype_)) return real_;
  return dtype_ == DType::U64 ? static_cast<double>(static_cast<uint64_t>(integer_)) : static_cast<double>(integer_);
}

int64_t Scalar::as_integer() const { return is_float(dtype_) ? truncate(real_) : integer_; }

bool operator==(const Scalar& a, const Scalar& b) {
  if (a.dtype_ != b.dtype_) return false;
  if (!is_float(a.dtype_)) return a.integer_ == b.integer_;
  if (std::isnan(a.real_) || std::isnan(b.real_)) return std::isnan(a.real_) && std::isnan(b.real_);
  return std::bit_cast<uint64_t>(a.real_) == std::bit_cast<uint64_t>(b.real_);
}

Scalar cast(const Scalar& value, DType to) {
  if (is_float(value.dtype())) return Scalar::from_real(to, value.real());
  if (value.dtype() == DType::U64 && is_float(to)) {
    const auto bits = static_cast<uint64_t>(value.integer());
    return Scalar::from_real(to, to == DType::F64 ? static_cast<double>(bits) : static_cast<float>(bits));
  }
  return Scalar::from_integer(to, value.integer());
}

std::string to_string(const Scalar& value) {
  if (value.dtype() == DType::Bool) return value.integer() ? "true" : "false";
  if (value.dtype() == DType::U64) return fmt::format("{}", static_cast<uint64_t>(value.integer()));
  if (!is_float(value.dtype())) return fmt::format("{}", value.integer());
  if (std::isnan(value.real())) return "nan";
  if (std::isinf(value.real())) return value.real() > 0 ? "inf" : "-inf";
  // The shortest text that reads back as this value of this dtype.
  std::string text = value.dtype() == DType::F64 ? fmt::format("{}", value.real()) : fmt::format("{}", static_cast<float>(value.real()));
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

Scalar parse_scalar(TextCursor& cursor, DType dtype) {
  if (cursor.accept("true")) return Scalar::from_integer(dtype, 1);
  if (cursor.accept("false")) return Scalar::from_integer(dtype, 0);
  if (is_float(dtype)) {
    const double value = cursor.real("a number");
    return Scalar::from_real(dtype, dtype == DType::F64 ? value : static_cast<double>(static_cast<float>(value)));
  }
  if (dtype == DType::U64) return Scalar::from_integer(dtype, static_cast<int64_t>(cursor.integer("an integer")));
  return Scalar::from_integer(dtype, cursor.integer("an integer"));
}

}  // namespace cxxinductor
