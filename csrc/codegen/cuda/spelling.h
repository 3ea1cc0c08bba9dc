// Dtypes, literals and ops in CUDA C++.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/scalar.h"
#include "ir/scalar_op.h"

namespace cxxinductor::codegen {

std::string_view cuda_type(DType dtype);  // "cxxi_bf16": as in memory. Throws Unsupported for opaque dtypes.
std::string cuda_literal(const Scalar& value);
// The row's spelling on operands of dtype, with these texts as operands.
std::string cuda_apply(const ScalarOpInfo& op, DType dtype, const std::vector<std::string>& operands);

}  // namespace cxxinductor::codegen
