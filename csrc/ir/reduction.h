// Reductions: one row each in reductions.def, from which all else follows. State is a tuple of components in the compute type of the operand.
//
// Sum-like reductions take compute types only (the front-end casts before and after); order-preserving ones
// (max, min, any, all, arg*) take every dtype.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/reduction_form.h"
#include "ir/scalar.h"

namespace cxxinductor {

// Values beyond the last one are registered reductions (registered_ops.h).
enum class Reduction : uint8_t {
#define REDUCTION(name, ...) name,
#include "ir/reductions.def"
#undef REDUCTION
};

// How the results over pieces of the elements become the result over all of them.
enum class Partials : uint8_t {
  None,     // they do not: a piece's state is more than its results
  Fold,     // the reduction of the pieces' results
  Moments,  // mean and squared deviations of equally long pieces, by sums (schedule/fusion/split_reduction.cpp)
};

struct ReductionInfo {
  std::string_view name;
  // Either a fold: the op joins `start`, a literal, and the elements. A predicate joins their truth values.
  std::optional<ScalarOp> fold{};
  // Or components "name:type ..." of the state and the results, and statements. See ReductionForm for what they read.
  std::string_view state{};
  std::string_view results{};
  std::string_view start{};
  std::string_view lift{};
  std::string_view merge{};
  std::string_view finish{};
  bool order_matters = false;          // the result may depend on the order of merging
  bool has_empty_value = false;        // the result over no elements is a value that eager has too
  Partials partials = Partials::None;  // of a state; folds are Partials::Fold
  // Structs of kernels_templates/ that hold the state: cuda/reduce.cuh, {T} is the operand's compute type; cpu/reduce.h, over dtype and lanes. Empty:
  // the struct is generated from the statements (codegen/cuda/reduction_state.cpp, codegen/cpu/reduction_state.cpp).
  std::string_view cuda{};
  std::string_view cpu{};
  // The results by their definition, over all elements in order: what tests compare the statements and kernels with.
  std::vector<Scalar> (*define)(DType operand, std::span<const Scalar> elements) = nullptr;
  std::string_view doc{};
};

const ReductionInfo& info(Reduction reduction);
bool is_registered(Reduction reduction);
const ReductionForm& form(Reduction reduction);
std::span<const ReductionInfo> reduction_rows();     // of reductions.def, in the order of the enum
ReductionForm parse_form(const ReductionInfo& row);  // UserError where the row's text is not valid
std::optional<Reduction> find_reduction(std::string_view name);
DType result_dtype(Reduction reduction, DType operand, size_t result = 0);  // argmax: i64; any, all: bool
Partials partials_of(Reduction reduction);
// Bytes of a state as a C struct of its components.
int64_t state_bytes(Reduction reduction, DType operand);
// The only result over no elements, where eager has a value too.
std::optional<Scalar> empty_value(Reduction reduction, DType operand);

}  // namespace cxxinductor
