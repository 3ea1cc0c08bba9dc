// ATen's type promotion: what at::result_type gives for operands of which only dtype and kind are known.
#pragma once

#include <optional>
#include <span>

#include "ir/dtype.h"

namespace cxxinductor::model {

// c10::promoteTypes; none where ATen has no promotion (8-bit floats, wide unsigned with signed).
std::optional<DType> promote_types(DType a, DType b);

// Tensors with dimensions outrank those without, which outrank numbers, unless the lower one is of a higher category
// (bool < integer < float < complex). Numbers: bool, i64, f32, c64.
enum class OperandKind : uint8_t { Dimensioned, ZeroDimensional, Number };
struct PromotedOperand {
  DType dtype;
  OperandKind kind;
};
std::optional<DType> common_dtype(std::span<const PromotedOperand> operands);

// Ops such as division and exp turn integers into the default float dtype.
DType integer_to_float(DType dtype);

bool is_complex(DType dtype);
DType complex_of(DType dtype);  // of its parts' dtype, of a complex dtype itself
DType real_of(DType dtype);     // of the parts, of a real dtype itself

// c10::canCast: whether an op in place may write results of a dtype into a tensor of another one.
bool can_cast(DType from, DType to);

}  // namespace cxxinductor::model
