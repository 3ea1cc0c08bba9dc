// Reductions: one row each in reductions.def. State is a tuple of components in the compute type of the operand.
//
// Sum-like reductions take compute types only (the front-end casts before and after); order-preserving ones
// (max, min, any, all, arg*) take every dtype.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/scalar.h"

namespace cxxinductor {

enum class Reduction : uint8_t {
#define REDUCTION(name, ...) name,
#include "ir/reductions.def"
#undef REDUCTION
};

struct ReductionInfo {
  std::string_view name;
  int results = 1;            // components that the IR exposes (argmax: 1, the index; welford: 2, mean and m2)
  int state = 1;              // components of the running state (argmax: value, index; welford: mean, m2, count)
  bool takes_index = false;   // the linear position within the reduced space is part of the state (argmax, argmin)
  bool order_matters = false; // result may depend on the order of summation (sum, prod, welford)
  std::string_view doc{};
};

const ReductionInfo& info(Reduction reduction);
std::optional<Reduction> find_reduction(std::string_view name);
DType result_dtype(Reduction reduction, DType operand);  // of each result; argmax: i64; any, all: bool
// Reference meaning. update: one element at a linear position; merge: two partial states, `left` covering earlier positions.
std::vector<Scalar> initial_state(Reduction reduction, DType operand);
void update(Reduction reduction, std::vector<Scalar>& state, const Scalar& value, int64_t position);
void merge(Reduction reduction, std::vector<Scalar>& left, const std::vector<Scalar>& right);
std::vector<Scalar> finish(Reduction reduction, const std::vector<Scalar>& state);  // the exposed results

}  // namespace cxxinductor
