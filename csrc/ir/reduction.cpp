#include "ir/reduction.h"

#include <array>
#include <cmath>
#include <limits>

#include "ir/scalar_op.h"
#include "support/error.h"

namespace cxxinductor {
namespace {

constexpr std::array reduction_rows{
#define REDUCTION(enumerator, ...) ReductionInfo{__VA_ARGS__},
#include "ir/reductions.def"
#undef REDUCTION
};

Scalar lowest(DType dtype) {
  if (is_float(dtype)) return Scalar::from_real(dtype, -std::numeric_limits<double>::infinity());
  if (dtype == DType::Bool || info(dtype).dtype_class == DTypeClass::Unsigned) return Scalar::from_integer(dtype, 0);
  return Scalar::from_integer(dtype, static_cast<int64_t>(~0ULL << (8 * byte_size(dtype) - 1)));
}

Scalar highest(DType dtype) {
  if (is_float(dtype)) return Scalar::from_real(dtype, std::numeric_limits<double>::infinity());
  if (dtype == DType::Bool) return Scalar::from_integer(dtype, 1);
  if (info(dtype).dtype_class == DTypeClass::Unsigned) return Scalar::from_integer(dtype, -1);
  return Scalar::from_integer(dtype, static_cast<int64_t>(~(~0ULL << (8 * byte_size(dtype) - 1))));
}

Scalar combine(ScalarOp op, const Scalar& a, const Scalar& b) {
  const Scalar operands[] = {a, b};
  return evaluate(op, operands);
}

bool is_nan(const Scalar& s) { return is_float(s.dtype()) && std::isnan(s.real()); }

// Whether `candidate` at a later position replaces `held`. NaN beats everything; of equal values the earlier one stays.
bool replaces(Reduction reduction, const Scalar& held, const Scalar& candidate) {
  if (is_nan(held)) return false;
  if (is_nan(candidate)) return true;
  return combine(reduction == Reduction::ArgMax ? ScalarOp::Gt : ScalarOp::Lt, candidate, held).truth();
}

// Chan's formula for two partial (mean, m2, count); counts are exact.
void merge_welford(std::vector<Scalar>& left, const std::vector<Scalar>& right) {
  const DType t = left[0].dtype();
  const double n1 = left[2].real(), n2 = right[2].real(), n = n1 + n2;
  if (n2 == 0) return;
  const double delta = right[0].real() - left[0].real();
  left[1] = Scalar::from_real(t, left[1].real() + right[1].real() + delta * delta * n1 * n2 / n);
  left[0] = Scalar::from_real(t, left[0].real() + delta * n2 / n);
  left[2] = Scalar::from_real(DType::F64, n);
}

// Both sums brought to the larger maximum.
void merge_softmax_sums(std::vector<Scalar>& left, const std::vector<Scalar>& right) {
  const Scalar largest = combine(ScalarOp::Maximum, left[0], right[0]);
  const double base = std::isinf(largest.real()) ? 0 : largest.real();
  const auto brought = [&](const std::vector<Scalar>& state) { return state[1].real() * std::exp(state[0].real() - base); };
  left = {largest, Scalar::from_real(left[1].dtype(), brought(left) + brought(right))};
}

}  // namespace

const ReductionInfo& info(Reduction reduction) { return reduction_rows[static_cast<size_t>(reduction)]; }

std::optional<Reduction> find_reduction(std::string_view name) {
  for (size_t i = 0; i < reduction_rows.size(); ++i) {
    if (reduction_rows[i].name == name) return static_cast<Reduction>(i);
  }
  return std::nullopt;
}

DType result_dtype(Reduction reduction, DType operand) {
  switch (reduction) {
    case Reduction::Any:
    case Reduction::All:
      return DType::Bool;
    case Reduction::ArgMax:
    case Reduction::ArgMin:
      return DType::I64;
    case Reduction::Sum:
    case Reduction::Prod:
    case Reduction::Max:
    case Reduction::Min:
    case Reduction::SoftmaxSum:
    case Reduction::Welford:
      return operand;
  }
  return operand;
}

std::vector<Scalar> initial_state(Reduction reduction, DType operand) {
  switch (reduction) {
    case Reduction::Sum:
      return {Scalar::from_integer(operand, 0)};
    case Reduction::Prod:
      return {Scalar::from_integer(operand, 1)};
    case Reduction::Max:
      return {lowest(operand)};
    case Reduction::Min:
      return {highest(operand)};
    case Reduction::Any:
      return {Scalar::from_integer(DType::Bool, 0)};
    case Reduction::All:
      return {Scalar::from_integer(DType::Bool, 1)};
    case Reduction::ArgMax:
      return {lowest(operand), Scalar::from_integer(DType::I64, -1)};
    case Reduction::ArgMin:
      return {highest(operand), Scalar::from_integer(DType::I64, -1)};
    case Reduction::SoftmaxSum:
      return {lowest(operand), Scalar::from_real(operand, 0)};
    case Reduction::Welford:
      return {Scalar::from_real(operand, 0), Scalar::from_real(operand, 0), Scalar::from_real(DType::F64, 0)};
  }
  return {};
}

void update(Reduction reduction, std::vector<Scalar>& state, const Scalar& value, int64_t position) {
  switch (reduction) {
    case Reduction::Sum:
      state[0] = combine(ScalarOp::Add, state[0], value);
      return;
    case Reduction::Prod:
      state[0] = combine(ScalarOp::Mul, state[0], value);
      return;
    case Reduction::Max:
      state[0] = combine(ScalarOp::Maximum, state[0], value);
      return;
    case Reduction::Min:
      state[0] = combine(ScalarOp::Minimum, state[0], value);
      return;
    case Reduction::Any:
      state[0] = Scalar::from_integer(DType::Bool, state[0].truth() || value.truth());
      return;
    case Reduction::All:
      state[0] = Scalar::from_integer(DType::Bool, state[0].truth() && value.truth());
      return;
    case Reduction::ArgMax:
    case Reduction::ArgMin:
      if (state[1].integer() < 0 || replaces(reduction, state[0], value))
        state = {value, Scalar::from_integer(DType::I64, position)};
      return;
    case Reduction::SoftmaxSum:
      merge_softmax_sums(state, {value, Scalar::from_real(value.dtype(), 1)});
      return;
    case Reduction::Welford:
      merge_welford(state, {value, Scalar::from_real(value.dtype(), 0), Scalar::from_real(DType::F64, 1)});
      return;
  }
}

void merge(Reduction reduction, std::vector<Scalar>& left, const std::vector<Scalar>& right) {
  switch (reduction) {
    case Reduction::Sum:
    case Reduction::Prod:
    case Reduction::Max:
    case Reduction::Min:
    case Reduction::Any:
    case Reduction::All:
      update(reduction, left, right[0], 0);
      return;
    case Reduction::ArgMax:
    case Reduction::ArgMin:
      if (right[1].integer() >= 0) update(reduction, left, right[0], right[1].integer());
      return;
    case Reduction::SoftmaxSum:
      merge_softmax_sums(left, right);
      return;
    case Reduction::Welford:
      merge_welford(left, right);
      return;
  }
}

std::vector<Scalar> finish(Reduction reduction, const std::vector<Scalar>& state) {
  switch (reduction) {
    case Reduction::ArgMax:
    case Reduction::ArgMin:
      return {state[1]};
    case Reduction::SoftmaxSum:
      // An infinite maximum minus itself is NaN.
      if (std::isinf(state[0].real())) return {state[0], Scalar::from_real(state[1].dtype(), std::nan(""))};
      return state;
    case Reduction::Welford:
      return {state[0], state[1]};
    case Reduction::Sum:
    case Reduction::Prod:
    case Reduction::Max:
    case Reduction::Min:
    case Reduction::Any:
    case Reduction::All:
      return {state[0]};
  }
  return {};
}

}  // namespace cxxinductor
