// Shared by importers of composites that reduce: ATen accumulates f16 and bf16 in f32 and rounds once, at the end.
#pragma once

#include <vector>

#include "frontend/pointwise.h"

namespace cxxinductor::frontend {

sym::Expr count_of(const Sizes& sizes, const std::vector<int>& dims);  // elements along dims; all of them when empty

// float(count) as a rank-0 operand of `compute`, or an immediate where it is constant.
Operand real_count(CallContext& context, sym::Expr count, DType compute);

// x times the inverse count on CUDA, x divided by the count on the CPU, as in eager's mean kernels.
ValueId divide_by_count(CallContext& context, ValueId x, sym::Expr count);

// Type of the steps of a reduction whose kernels in eager may be wider than the compute type: variances and scans.
DType step_type(const CallContext& context, DType dtype);

struct Moments {
  ValueId mean;
  ValueId m2;  // sum of squared deviations
};
Moments moments(CallContext& context, ValueId x, const std::vector<int>& dims, bool keepdim);

// 1 / sqrt(m2 / count + epsilon)
ValueId reciprocal_deviation(CallContext& context, ValueId m2, sym::Expr count, double epsilon);

std::vector<int> all_dims(int rank);

}  // namespace cxxinductor::frontend
