// Integer arithmetic of size expressions: Python's floor semantics on int64, overflow and zero divisors as errors.
#pragma once

#include <cstdint>

#include "support/error.h"

namespace cxxinductor::sym {

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw_unsupported("a size or index overflows 64 bits: {} + {}", a, b);
  return r;
}

inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw_unsupported("a size or index overflows 64 bits: {} * {}", a, b);
  return r;
}

inline int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == 0) throw_user_error("division by zero in a size or index expression");
  if (b == -1) return checked_mul(a, -1);
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

// a and b are not negative.
constexpr int64_t ceil_quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline int64_t floor_remainder(int64_t a, int64_t b) {
  if (b == 0) throw_user_error("division by zero in a size or index expression");
  if (b == -1) return 0;
  const int64_t r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}

}  // namespace cxxinductor::sym
