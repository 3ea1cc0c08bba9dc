// Shared by importers of elementwise ops: applies one scalar op to promoted terms.
#pragma once

#include <span>

#include "frontend/promotion.h"

namespace cxxinductor::frontend {

// Dtype that `op` runs in on these terms: their common dtype, floating where the row wants it. None: import as extern.
std::optional<DType> operation_dtype(const CallContext& context, ScalarOp op, std::span<const Term> terms);

// The op on the terms in `dtype`. The result is expanded to the call's result sizes only by broadcasting.
Results apply(CallContext& context, ScalarOp op, std::span<const Term> terms, DType dtype, ScalarRounding rounding = ScalarRounding::ByDevice);
Results apply_promoted(CallContext& context, ScalarOp op, std::span<const Term> terms, ScalarRounding rounding = ScalarRounding::ByDevice);

// Terms of the arguments from `first` on, by the names; none when one is absent or of another kind.
std::optional<std::vector<Term>> terms_of(const CallContext& context, std::initializer_list<std::string_view> names, size_t first = 0);

// Of the terms dividend and divisor: eager's kernels of the CPU raise.
bool divides_integers_by_zero(const CallContext& context, std::span<const Term> terms);

Scalar immediate_real(DType dtype, double value);  // in the compute type of dtype

}  // namespace cxxinductor::frontend
