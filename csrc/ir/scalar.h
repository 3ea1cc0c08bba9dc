// One element's value, outside kernels: immediates in the IRs, constant folding, the interpreter.
#pragma once

#include <cstdint>
#include <string>

#include "ir/dtype.h"
#include "support/text_cursor.h"

namespace cxxinductor {

// Float dtypes hold `real` (already rounded to the dtype), all others `integer` (two's complement for u64).
class Scalar {
 public:
  Scalar() = default;
  static Scalar from_real(DType dtype, double value);      // rounds to a float dtype; converts as static_cast otherwise
  static Scalar from_integer(DType dtype, int64_t value);  // wraps to an integer dtype's width; rounds to a float dtype
  DType dtype() const { return dtype_; }
  double real() const { return real_; }
  int64_t integer() const { return integer_; }
  bool truth() const { return is_float(dtype_) ? real_ != 0 : integer_ != 0; }
  double as_real() const;                                    // the value as a double, whatever the dtype
  int64_t as_integer() const;                                // truncated towards zero for floats; does not saturate
  friend bool operator==(const Scalar& a, const Scalar& b);  // same dtype and same bits (NaN equals NaN, -0 differs from 0)

 private:
  DType dtype_ = DType::F32;
  double real_ = 0;
  int64_t integer_ = 0;
};

// ATen's conversion (c10::convert): float to integer truncates, anything to bool tests for non-zero, narrowing wraps,
// double to f16/bf16/f8 goes through float, as eager's cast kernels do.
Scalar cast(const Scalar& value, DType to);
// Whether kernels make of it what cast does: what becomes of a float that an integer does not hold is the device's, and on the CPU another value in
// 32 bits than in 64.
bool is_same_on_all_devices(const Scalar& value, DType cast_to);
double round_to(DType dtype, double value);  // nearest even, through float for the narrow types
// The element as it lies in memory, in the low bits. A NaN comes out as the positive quiet one.
uint64_t bits_of(const Scalar& value);
Scalar scalar_from_bits(DType dtype, uint64_t bits);
// "0.3", "-inf", "nan", "7", "true": the dtype decides how it is read. Floats print so that they read back bit for bit.
std::string to_string(const Scalar& value);
Scalar parse_scalar(TextCursor& cursor, DType dtype);

}  // namespace cxxinductor
