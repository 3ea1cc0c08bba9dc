// Dtypes, literals and ops in C++ for the functions of kernels_templates/cpu.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/scalar.h"
#include "ir/scalar_op.h"

namespace cxxinductor::codegen {

// "cxxi::bf16": the tag that kernels_templates/cpu/vector.h knows a dtype by. Throws Unsupported for opaque dtypes.
std::string cpu_dtype_tag(DType dtype);
// The C type of a compute type.
std::string_view cpu_compute_type(DType dtype);
// A one-lane value in C++, exact to the bit.
std::string cpu_literal(const Scalar& value);
// The op applied to the parameters a, b, c ...
std::string cpu_expression(const ScalarOpInfo& op, DType dtype);
// An op on values of dtype `from` with `lanes` lanes ("L", "1").
std::string cpu_apply(const ScalarOpInfo& op, DType from, DType to, const std::string& lanes, const std::vector<std::string>& operands);
// Slot enumerator of the vector function for a row's `sleef` name: "cxxi_slot_exp_u10_f32".
std::string cpu_math_slot(std::string_view sleef, DType dtype);

}  // namespace cxxinductor::codegen
