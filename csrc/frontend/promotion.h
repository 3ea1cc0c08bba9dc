// ATen's type promotion: tensors, zero-dimensional tensors and Python numbers to one dtype, as at::result_type does it.
//
// The result is explicit: tensors behind casts, numbers as immediates in the compute type of the common dtype
// (never rounded to a narrower tensor dtype, as eager's kernels hold them). No other file of this layer promotes.
#pragma once

#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "frontend/importer.h"
#include "model/promotion.h"

namespace cxxinductor::frontend {

// The value of a rank-0 CPU tensor: promotes as a rank-0 tensor of that dtype, enters the kernel as a number.
struct KnownScalar {
  ScalarArg value;
  DType dtype;
};
using Term = std::variant<ValueId, ScalarArg, KnownScalar>;

// Dtype that an elementwise op of these terms computes in (model/promotion.h); none where ATen has no promotion, and where it
// is complex.
std::optional<DType> common_dtype(const graph::Graph& graph, std::span<const Term> terms);

using model::integer_to_float;

// The number as an immediate of dtype's compute type; none when an integer dtype cannot hold it (eager raises), and for a
// GivenReal.
std::optional<Operand> immediate(const ScalarArg& number, DType dtype);
// Whether eager fills a tensor of this dtype with the number, or raises since it is beyond its largest one. Kernels that compute with the number do not.
bool may_fill(DType dtype, const ScalarArg& number);
// As an immediate, or as a value in that type.
std::optional<Operand> number_operand(const CallContext& context, const ScalarArg& number, DType dtype);
// The operand, a number, rounded to dtype: kernels hold it in the compute type.
Operand rounded_number(const CallContext& context, Operand number, DType dtype);

// How numbers and rank-0 tensors enter a kernel of a narrower dtype. Eager's CUDA kernels hold numbers in the compute
// type; its CPU kernels round them to the dtype, but for the second operand of mul and div, which they hold in the compute
// type, a rank-0 tensor too.
enum class ScalarRounding : uint8_t { ByDevice, ButSecond, Never };

// Terms as operands of an op on `dtype`: casts in front of tensors, immediates for numbers.
std::optional<std::vector<Operand>> operands_in(CallContext& context, std::span<const Term> terms, DType dtype,
                                                ScalarRounding rounding = ScalarRounding::ByDevice);

// The number of a term, null for a tensor.
const ScalarArg* scalar_arg_of(const Term& term);

// Tensor or number at a position. A rank-0 CPU tensor with a known value in a CUDA call is a KnownScalar, as eager's
// kernels take it by value.
std::optional<Term> term(const CallContext& context, size_t position, std::string_view name);

}  // namespace cxxinductor::frontend
