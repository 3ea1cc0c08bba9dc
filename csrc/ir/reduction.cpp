#include "ir/reduction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ir/registered_ops.h"
#include "support/error.h"
#include "support/fork_locks.h"

namespace cxxinductor {
namespace {

// ---- Functions for the definitions of reductions.def: in order, in long double or wrapping integers, and rounded once -------------------
using Elements = std::span<const Scalar>;

Scalar total(DType type, Elements x) {
  if (!is_float(type)) {
    uint64_t sum = 0;
    for (const Scalar& element : x) sum += static_cast<uint64_t>(element.integer());
    return Scalar::from_integer(type, static_cast<int64_t>(sum));
  }
  long double sum = 0;
  for (const Scalar& element : x) sum += element.real();
  return Scalar::from_real(type, static_cast<double>(sum));
}

Scalar product(DType type, Elements x) {
  if (!is_float(type)) {
    uint64_t result = 1;
    for (const Scalar& element : x) result *= static_cast<uint64_t>(element.integer());
    return Scalar::from_integer(type, static_cast<int64_t>(result));
  }
  long double result = 1;
  for (const Scalar& element : x) result *= element.real();
  return Scalar::from_real(type, static_cast<double>(result));
}

// The first NaN, else the first element that no other is `better` than.
size_t first_extreme(Elements x, ScalarOp better) {
  size_t best = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (is_float(x[i].dtype()) && std::isnan(x[i].real())) return i;
    const Scalar pair[] = {x[i], x[best]};
    if (evaluate(better, pair).truth()) best = i;
  }
  return best;
}

Scalar position(Elements x, ScalarOp better) { return Scalar::from_integer(DType::I64, x.empty() ? -1 : static_cast<int64_t>(first_extreme(x, better))); }

std::vector<Scalar> softmax_sum(DType type, Elements x) {
  const Scalar largest = x.empty() ? lowest_value(type) : x[first_extreme(x, ScalarOp::Gt)];
  long double sum = 0;
  for (const Scalar& element : x) sum += std::exp(static_cast<long double>(element.real()) - largest.real());
  return {largest, Scalar::from_real(type, std::isinf(largest.real()) ? std::nan("") : static_cast<double>(sum))};
}

std::vector<Scalar> moments(DType type, Elements x) {
  if (x.empty()) return {Scalar::from_real(type, 0), Scalar::from_real(type, 0)};
  long double sum = 0, squares = 0;
  for (const Scalar& element : x) sum += element.real();
  const long double mean = sum / static_cast<long double>(x.size());
  for (const Scalar& element : x) squares += (element.real() - mean) * (element.real() - mean);
  return {Scalar::from_real(type, static_cast<double>(mean)), Scalar::from_real(type, static_cast<double>(squares))};
}

// NaN beats everything; of equal values the smaller position wins, whatever the order of merging.
#define ARG_EXTREME(better)                                                 \
  "a_nan = ne(a.value, a.value), b_nan = ne(b.value, b.value),"             \
  "beats = logical_or(" better                                              \
  "(b.value, a.value), logical_and(b_nan, logical_not(a_nan))),"            \
  "equal = logical_or(eq(a.value, b.value), logical_and(a_nan, b_nan)),"    \
  "wins = logical_or(beats, logical_and(equal, lt(b.index, a.index))),"     \
  "chosen = logical_and(ge(b.index, 0), logical_or(lt(a.index, 0), wins))," \
  "value = where(chosen, b.value, a.value), index = where(chosen, b.index, a.index)"
#define DEFINE(...)                          \
  [](DType T, Elements x) {                  \
    static_cast<void>(T);                    \
    return std::vector<Scalar>(__VA_ARGS__); \
  }
constexpr std::array builtin_rows{
#define REDUCTION(enumerator, ...) ReductionInfo{__VA_ARGS__},
#include "ir/reductions.def"
#undef REDUCTION
};
#undef DEFINE
#undef ARG_EXTREME

std::array<ReductionForm, builtin_rows.size()> parse_rows() {
  std::array<ReductionForm, builtin_rows.size()> forms;
  std::ranges::transform(builtin_rows, forms.begin(), parse_form);
  return forms;
}

}  // namespace

std::span<const ReductionInfo> reduction_rows() { return builtin_rows; }

const ReductionInfo& info(Reduction reduction) {
  const size_t index = static_cast<size_t>(reduction);
  return index < builtin_rows.size() ? builtin_rows[index] : registered_reduction(index - builtin_rows.size());
}

bool is_registered(Reduction reduction) { return static_cast<size_t>(reduction) >= builtin_rows.size(); }

const ReductionForm& form(Reduction reduction) {
  static constinit MadeOnce<std::array<ReductionForm, builtin_rows.size()>, ForkLock::Leaf> forms;
  const size_t index = static_cast<size_t>(reduction);
  return index < builtin_rows.size() ? forms.get(parse_rows)[index] : registered_reduction_form(index - builtin_rows.size());
}

ReductionForm parse_form(const ReductionInfo& row) {
  if (!row.fold) return parse_reduction_form(row.state, row.results, row.start, row.lift, row.merge, row.finish);
  const bool truth = info(*row.fold).rule == TypeRule::Predicate;
  const std::string_view value = truth ? "value:bool" : "value:T";
  return parse_reduction_form(value, value, fmt::format("value = {}", row.start), truth ? "value = cast<bool>(x)" : "value = x",
                              fmt::format("value = {}(a.value, b.value)", info(*row.fold).name), "");
}

std::optional<Reduction> find_reduction(std::string_view name) {
  for (size_t i = 0; i < builtin_rows.size(); ++i) {
    if (builtin_rows[i].name == name) return static_cast<Reduction>(i);
  }
  if (const auto found = find_registered_reduction_named(name)) return static_cast<Reduction>(builtin_rows.size() + *found);
  return std::nullopt;
}

DType result_dtype(Reduction reduction, DType operand, size_t result) { return form(reduction).results.at(result).dtype(operand); }

Partials partials_of(Reduction reduction) { return info(reduction).fold ? Partials::Fold : info(reduction).partials; }

int64_t state_bytes(Reduction reduction, DType operand) {
  int64_t bytes = 0, alignment = 1;
  for (const TypedName& component : form(reduction).state) {
    const int64_t size = byte_size(compute_type(component.dtype(operand)));
    bytes = (bytes + size - 1) / size * size + size;
    alignment = std::max(alignment, size);
  }
  return (bytes + alignment - 1) / alignment * alignment;
}

std::optional<Scalar> empty_value(Reduction reduction, DType operand) {
  if (!info(reduction).has_empty_value) return std::nullopt;
  return form(reduction).finished(form(reduction).initial_state(operand)).front();
}

}  // namespace cxxinductor
