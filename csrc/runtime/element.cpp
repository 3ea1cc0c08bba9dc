#include "runtime/element.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/error.h"

namespace cxxinductor::runtime {
namespace {

// A float narrower than 32 bits: sign, exponent, mantissa. Finite formats (f8e4m3fn) have one NaN and no infinity.
struct NarrowFloat {
  int exponent_bits, mantissa_bits;
  bool finite = false;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t largest_exponent() const { return (1u << exponent_bits) - 1; }
  uint32_t mantissa_mask() const { return (1u << mantissa_bits) - 1; }
};

NarrowFloat format_of(DType dtype) {
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

double decode(NarrowFloat f, uint32_t bits) {
  const uint32_t mantissa = bits & f.mantissa_mask();
  const uint32_t exponent = (bits >> f.mantissa_bits) & f.largest_exponent();
  const bool negative = (bits >> (f.mantissa_bits + f.exponent_bits)) & 1u;
  double value;
  if (f.finite && exponent == f.largest_exponent() && mantissa == f.mantissa_mask()) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (!f.finite && exponent == f.largest_exponent()) {
    value = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - f.bias() - f.mantissa_bits);
  } else {
    value = std::ldexp(mantissa + (1u << f.mantissa_bits), static_cast<int>(exponent) - f.bias() - f.mantissa_bits);
  }
  return negative ? -value : value;
}

// `value` is a value of the format.
uint32_t encode(NarrowFloat f, double value) {
  const uint32_t sign = std::signbit(value) ? 1u << (f.mantissa_bits + f.exponent_bits) : 0;
  const double magnitude = std::fabs(value);
  const uint32_t top = f.largest_exponent() << f.mantissa_bits;
  if (std::isnan(value)) return sign | top | (f.finite ? f.mantissa_mask() : 1u << (f.mantissa_bits - 1));
  if (std::isinf(value)) return sign | top;
  if (magnitude == 0) return sign;
  const int exponent = std::ilogb(magnitude) + f.bias();
  if (exponent <= 0) return sign | static_cast<uint32_t>(std::ldexp(magnitude, f.bias() - 1 + f.mantissa_bits));
  const auto mantissa = static_cast<uint32_t>(std::ldexp(magnitude, f.bias() + f.mantissa_bits - exponent));
  return sign | (static_cast<uint32_t>(exponent) << f.mantissa_bits) | (mantissa & f.mantissa_mask());
}

template <class T>
T read_as(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}
template <class T>
void write_as(T value, void* address) {
  std::memcpy(address, &value, sizeof value);
}

}  // namespace

Scalar read_element(DType dtype, const void* address) {
  switch (dtype) {
    case DType::F64:
      return Scalar::from_real(dtype, read_as<double>(address));
    case DType::F32:
      return Scalar::from_real(dtype, read_as<float>(address));
    case DType::F16:
    case DType::BF16:
      return Scalar::from_real(dtype, decode(format_of(dtype), read_as<uint16_t>(address)));
    case DType::F8E4M3FN:
    case DType::F8E5M2:
      return Scalar::from_real(dtype, decode(format_of(dtype), read_as<uint8_t>(address)));
    case DType::I8:
      return Scalar::from_integer(dtype, read_as<int8_t>(address));
    case DType::I16:
      return Scalar::from_integer(dtype, read_as<int16_t>(address));
    case DType::I32:
      return Scalar::from_integer(dtype, read_as<int32_t>(address));
    case DType::I64:
      return Scalar::from_integer(dtype, read_as<int64_t>(address));
    case DType::U8:
      return Scalar::from_integer(dtype, read_as<uint8_t>(address));
    case DType::U16:
      return Scalar::from_integer(dtype, read_as<uint16_t>(address));
    case DType::U32:
      return Scalar::from_integer(dtype, read_as<uint32_t>(address));
    case DType::U64:
      return Scalar::from_integer(dtype, static_cast<int64_t>(read_as<uint64_t>(address)));
    case DType::Bool:
      return Scalar::from_integer(dtype, read_as<uint8_t>(address) != 0);
    case DType::C64:
    case DType::C128:
      break;
  }
  throw_unsupported("elements of dtype {} are opaque", to_string(dtype));
}

void write_element(const Scalar& value, void* address) {
  switch (value.dtype()) {
    case DType::F64:
      return write_as<double>(value.real(), address);
    case DType::F32:
      return write_as<float>(static_cast<float>(value.real()), address);
    case DType::F16:
    case DType::BF16:
      return write_as<uint16_t>(static_cast<uint16_t>(encode(format_of(value.dtype()), value.real())), address);
    case DType::F8E4M3FN:
    case DType::F8E5M2:
      return write_as<uint8_t>(static_cast<uint8_t>(encode(format_of(value.dtype()), value.real())), address);
    case DType::I8:
    case DType::U8:
      return write_as<int8_t>(static_cast<int8_t>(value.integer()), address);
    case DType::I16:
    case DType::U16:
      return write_as<int16_t>(static_cast<int16_t>(value.integer()), address);
    case DType::I32:
    case DType::U32:
      return write_as<int32_t>(static_cast<int32_t>(value.integer()), address);
    case DType::I64:
    case DType::U64:
      return write_as<int64_t>(value.integer(), address);
    case DType::Bool:
      return write_as<uint8_t>(value.integer() != 0, address);
    case DType::C64:
    case DType::C128:
      break;
  }
  throw_unsupported("elements of dtype {} are opaque", to_string(value.dtype()));
}

}  // namespace cxxinductor::runtime
