#include "ir/scalar.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "support/error.h"

namespace cxxinductor {
namespace {

// A float narrower than 32 bits, by its stored bits. A finite format has no infinity, and one NaN: all bits set.
struct NarrowFloat {
  int exponent_bits, mantissa_bits;
  bool finite = false;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t exponent_mask() const { return (1u << exponent_bits) - 1; }
  uint32_t mantissa_mask() const { return (1u << mantissa_bits) - 1; }
  double largest() const {
    const uint32_t exponent = exponent_mask() - (finite ? 0 : 1), mantissa = mantissa_mask() - (finite ? 1 : 0);
    return std::ldexp(mantissa + mantissa_mask() + 1, static_cast<int>(exponent) - bias() - mantissa_bits);
  }
};

NarrowFloat narrow_float(DType dtype) {
  switch (dtype) {
    case DType::F16:
      return {5, 10};
    case DType::BF16:
      return {8, 7};
    case DType::F8E4M3FN:
      return {4, 3, true};
    case DType::F8E5M2:
      return {5, 2};
    default:
      throw_internal("{} is no narrow float", to_string(dtype));
  }
}

// Nearest even; beyond the largest finite value infinity, or NaN where there is no infinity.
double round_to(NarrowFloat format, double value) {
  if (std::isnan(value) || value == 0) return value;
  const double beyond = format.finite ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  if (std::isinf(value)) return std::copysign(beyond, value);
  // In [2^52, 2^53) units, doubles are the integers: adding 1.5 * 2^52 units rounds to one, nearest even, and subtracting it leaves that.
  const int quantum = std::max(std::ilogb(value), 1 - format.bias()) - format.mantissa_bits;
  const double units = std::ldexp(1.5, 52 + quantum);
  const double rounded = std::copysign((value + units) - units, value);
  return std::fabs(rounded) > format.largest() ? std::copysign(beyond, value) : rounded;
}

// A bf16 is the upper half of a float.
double round_to_bf16(float value) {
  if (std::isnan(value)) return value;
  uint32_t bits = std::bit_cast<uint32_t>(value);
  bits += 0x7fff + ((bits >> 16) & 1);
  return std::bit_cast<float>(bits & 0xffff0000);
}

// `value` is a value of the format.
uint32_t encode(NarrowFloat format, double value) {
  const uint32_t sign = std::signbit(value) ? 1u << (format.mantissa_bits + format.exponent_bits) : 0;
  const uint32_t top = format.exponent_mask() << format.mantissa_bits;
  if (std::isnan(value)) return top | (format.finite ? format.mantissa_mask() : 1u << (format.mantissa_bits - 1));
  if (std::isinf(value)) return sign | top;
  if (value == 0) return sign;
  const double magnitude = std::fabs(value);
  const int exponent = std::ilogb(magnitude) + format.bias();
  if (exponent <= 0) return sign | static_cast<uint32_t>(std::ldexp(magnitude, format.bias() - 1 + format.mantissa_bits));
  const auto mantissa = static_cast<uint32_t>(std::ldexp(magnitude, format.bias() + format.mantissa_bits - exponent));
  return sign | (static_cast<uint32_t>(exponent) << format.mantissa_bits) | (mantissa & format.mantissa_mask());
}

double decode(NarrowFloat format, uint32_t bits) {
  const uint32_t mantissa = bits & format.mantissa_mask();
  const uint32_t exponent = (bits >> format.mantissa_bits) & format.exponent_mask();
  const double sign = (bits >> (format.mantissa_bits + format.exponent_bits)) & 1u ? -1 : 1;
  const bool top = exponent == format.exponent_mask();
  if (top && (format.finite ? mantissa == format.mantissa_mask() : mantissa != 0)) return std::numeric_limits<double>::quiet_NaN();
  if (top && !format.finite) return sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - format.bias() - format.mantissa_bits);
  return sign * std::ldexp(mantissa + format.mantissa_mask() + 1, static_cast<int>(exponent) - format.bias() - format.mantissa_bits);
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
  if (std::isnan(value) || value >= 9223372036854775808.0 || value < -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

}  // namespace

double round_to(DType dtype, double value) {
  if (dtype == DType::F64) return value;
  if (dtype == DType::F32) return static_cast<float>(value);
  if (dtype == DType::BF16) return round_to_bf16(static_cast<float>(value));
  return round_to(narrow_float(dtype), static_cast<float>(value));
}

uint64_t bits_of(const Scalar& value) {
  CXXI_CHECK(!is_opaque(value.dtype()), "{} has no elements", to_string(value.dtype()));
  if (!is_float(value.dtype())) return static_cast<uint64_t>(value.integer());
  if (value.dtype() == DType::F64) return std::bit_cast<uint64_t>(std::isnan(value.real()) ? std::numeric_limits<double>::quiet_NaN() : value.real());
  if (value.dtype() == DType::BF16 && !std::isnan(value.real())) return std::bit_cast<uint32_t>(static_cast<float>(value.real())) >> 16;
  if (value.dtype() != DType::F32) return encode(narrow_float(value.dtype()), value.real());
  const auto single = static_cast<float>(value.real());
  return std::bit_cast<uint32_t>(std::isnan(single) ? std::numeric_limits<float>::quiet_NaN() : single);
}

Scalar scalar_from_bits(DType dtype, uint64_t bits) {
  CXXI_CHECK(!is_opaque(dtype), "{} has no elements", to_string(dtype));
  if (!is_float(dtype)) return Scalar::from_integer(dtype, static_cast<int64_t>(bits));
  if (dtype == DType::F64) return Scalar::from_real(dtype, std::bit_cast<double>(bits));
  if (dtype == DType::F32) return Scalar::from_real(dtype, std::bit_cast<float>(static_cast<uint32_t>(bits)));
  if (dtype == DType::BF16) return Scalar::from_real(dtype, std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
  return Scalar::from_real(dtype, decode(narrow_float(dtype), static_cast<uint32_t>(bits)));
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

bool is_same_on_all_devices(const Scalar& value, DType cast_to) {
  if (!is_float(value.dtype()) || is_float(cast_to) || cast_to == DType::Bool) return true;
  return std::abs(value.real()) < (byte_size(cast_to) == 8 ? 0x1p63 : 0x1p31);
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
