#include "model/promotion.h"

#include <array>

namespace cxxinductor::model {
namespace {

bool is_narrow_float(DType dtype) { return dtype == DType::F8E4M3FN || dtype == DType::F8E5M2; }

bool is_wide_unsigned(DType dtype) { return dtype == DType::U16 || dtype == DType::U32 || dtype == DType::U64; }

int category(DType dtype) { return is_complex(dtype) ? 3 : is_float(dtype) ? 2 : dtype == DType::Bool ? 0 : 1; }

// One of the three levels of priority; promotes within itself.
struct Level {
  std::optional<DType> dtype;
  bool is_valid = true;
  void add(DType other) {
    const auto promoted = dtype ? promote_types(*dtype, other) : std::optional(other);
    is_valid = is_valid && promoted.has_value();
    if (promoted) dtype = promoted;
  }
};

// The lower level matters only where its category is higher, or where there is nothing above it.
std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower, bool* is_valid) {
  if (!higher || !lower) return higher ? higher : lower;
  if (category(*higher) >= category(*lower) && *higher != DType::Bool) return higher;
  if (is_float(*higher)) return complex_of(*higher);
  const auto promoted = promote_types(*higher, *lower);
  *is_valid = *is_valid && promoted.has_value();
  return promoted;
}

}  // namespace

bool is_complex(DType dtype) { return dtype == DType::C32 || dtype == DType::C64 || dtype == DType::C128; }

DType complex_of(DType dtype) {
  if (is_complex(dtype)) return dtype;
  return dtype == DType::F64 ? DType::C128 : dtype == DType::F16 ? DType::C32 : DType::C64;
}

DType real_of(DType dtype) {
  if (!is_complex(dtype)) return dtype;
  return dtype == DType::C128 ? DType::F64 : dtype == DType::C32 ? DType::F16 : DType::F32;
}

bool can_cast(DType from, DType to) { return category(from) <= category(to); }

std::optional<DType> promote_types(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  if (is_narrow_float(a) || is_narrow_float(b)) return std::nullopt;
  if (is_complex(a) || is_complex(b)) {
    const auto part = promote_types(real_of(a), real_of(b));
    return part ? std::optional(complex_of(*part)) : std::nullopt;
  }
  if (is_float(a) && is_float(b)) {
    if (byte_size(a) == byte_size(b)) return DType::F32;  // f16 with bf16
    return byte_size(a) > byte_size(b) ? a : b;
  }
  if (is_float(a)) return a;
  if (is_float(b)) return b;
  if (is_wide_unsigned(a) || is_wide_unsigned(b)) return std::nullopt;
  if (byte_size(a) == byte_size(b)) return DType::I16;  // i8 with u8
  return byte_size(a) > byte_size(b) ? a : b;
}

std::optional<DType> common_dtype(std::span<const PromotedOperand> operands) {
  std::array<Level, 3> levels;
  for (const PromotedOperand& operand : operands) levels[static_cast<size_t>(operand.kind)].add(operand.dtype);
  const auto& [dimensioned, zero_dimensional, numbers] = levels;
  bool is_valid = dimensioned.is_valid && zero_dimensional.is_valid && numbers.is_valid;
  const auto lower = combine(zero_dimensional.dtype, numbers.dtype, &is_valid);
  const auto common = combine(dimensioned.dtype, lower, &is_valid);
  return is_valid ? common : std::nullopt;
}

DType integer_to_float(DType dtype) { return is_float(dtype) || is_opaque(dtype) ? dtype : DType::F32; }

}  // namespace cxxinductor::model
