// Rows of reductions.def: their statements, merged in random trees, against their definitions over edge values; what parsing refuses; a reduction that
// is a row of this test alone.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "ir/reduction.h"
#include "support/error.h"
#include "unit/catch.h"

using namespace cxxinductor;

namespace {

using State = std::vector<Scalar>;
using Elements = std::vector<Scalar>;

constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<DType> dtypes_of(const ReductionInfo& row) {
  if (row.name == "softmax_sum" || row.name == "welford") return {DType::F32, DType::F64};
  if (row.order_matters) return {DType::F32, DType::F64, DType::I32, DType::I64};
  return {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::I64, DType::U8, DType::U64, DType::Bool};
}

// The state of elements [begin, end), which lie at these positions: one after the other, or two parts merged.
State random_tree(const ReductionForm& form, DType dtype, const Elements& x, size_t begin, size_t end, std::mt19937& random) {
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n)(random); };
  State state = form.initial_state(dtype);
  if (end - begin < 2 || below(3) == 0) {
    for (size_t i = begin; i < end; ++i) form.update(state, x[i], static_cast<int64_t>(i));
    return state;
  }
  const size_t middle = begin + below(end - begin);  // a part may be empty
  state = random_tree(form, dtype, x, begin, middle, random);
  form.merge_into(state, random_tree(form, dtype, x, middle, end, random));
  return state;
}

// Floats between -4 and 4, or all values of an integer dtype; edge values with a chance of `edges` in eight each.
Elements random_elements(DType dtype, size_t count, unsigned edges, std::mt19937& random) {
  Elements x;
  const double edge_values[] = {0.0, -0.0, infinity, -infinity, std::nan(""), 1.0};
  for (size_t i = 0; i < count; ++i) {
    const bool edge = random() % 8 < edges;
    if (is_float(dtype))
      x.push_back(Scalar::from_real(dtype, edge ? edge_values[random() % 6] : std::uniform_real_distribution<double>(-4, 4)(random)));
    else if (edge)
      x.push_back(random() % 2 ? lowest_value(dtype) : highest_value(dtype));
    else
      x.push_back(Scalar::from_integer(dtype, static_cast<int64_t>(random() % 5)));
  }
  return x;
}

// Equal, or both zero, or both NaN, or within the bound.
bool agrees(const Scalar& found, const Scalar& expected, double bound) {
  if (!is_float(expected.dtype())) return found == expected;
  const double a = found.real(), b = expected.real();
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= bound;
}

// How far a result may lie from its definition. Of n elements, sums are off by n * u * sum(|x|) at most, products by n * u of their value (Higham,
// Accuracy and Stability of Numerical Algorithms, 3.1 and 4.2), squared deviations by n * u * sum(x^2) in first order (Chan, Golub, LeVeque 1983).
// An exponential's argument is off by u of itself, once for each merge. Eight is the largest |x - y| of random elements, and room for factors.
double error_bound(const ReductionInfo& row, const Elements& x, const Scalar& expected) {
  if (!row.order_matters || !is_float(expected.dtype())) return 0;
  const double u = expected.dtype() == DType::F64 ? 0x1p-53 : 0x1p-24;
  double scale = row.name == "prod" || row.name == "softmax_sum" ? std::fabs(expected.real()) : 0;
  if (row.name == "sum" || row.name == "welford")
    for (const Scalar& element : x) scale += std::fabs(element.real()) * std::max(1.0, row.name == "sum" ? 1.0 : std::fabs(element.real()));
  return 8 * static_cast<double>(x.size() + 1) * u * scale;
}

void compare_with_definition(const ReductionInfo& row, const ReductionForm& form, DType dtype, const Elements& x, std::mt19937& random) {
  const std::vector<Scalar> expected = row.define(dtype, x);
  const std::vector<Scalar> found = form.finished(random_tree(form, dtype, x, 0, x.size(), random));
  REQUIRE(found.size() == expected.size());
  for (size_t r = 0; r < found.size(); ++r) {
    INFO(row.name << " of " << to_string(dtype) << ", " << x.size() << " elements, result " << r << ": " << to_string(found[r]) << ", expected "
                  << to_string(expected[r]));
    CHECK(found[r].dtype() == form.results[r].dtype(dtype));
    // The next difference from an infinite mean is inf - inf: which results are infinite and which NaN is up to the order of merging.
    if (row.name == "welford" && std::ranges::any_of(x, [](const Scalar& element) { return std::isinf(element.real()); })) {
      CHECK(!std::isfinite(found[r].real()));
      continue;
    }
    CHECK(agrees(found[r], expected[r], error_bound(row, x, expected[r])));
  }
}

void sweep(const ReductionInfo& row, const std::vector<DType>& dtypes) {
  const ReductionForm form = parse_form(row);
  std::mt19937 random(7);
  for (const DType dtype : dtypes) {
    for (const size_t count : {0, 1, 2, 3, 7, 64, 200}) {
      for (int repeat = 0; repeat < 6; ++repeat) {
        const unsigned edges = repeat % 3 == 0 ? 0 : repeat % 3 == 1 ? 1 : 7;
        compare_with_definition(row, form, dtype, random_elements(dtype, count, edges, random), random);
      }
    }
    for (const double value : {0.0, -0.0, 1.0, infinity, -infinity, std::nan("")})
      if (is_float(dtype))
        for (const size_t count : {1, 2, 5}) compare_with_definition(row, form, dtype, Elements(count, Scalar::from_real(dtype, value)), random);
  }
}

std::string refusal(std::string_view state, std::string_view start, std::string_view lift, std::string_view merge, std::string_view finish = "") {
  try {
    parse_reduction_form(state, state, start, lift, merge, finish);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("random merge trees of each reduction agree with its definition") {
  for (const ReductionInfo& row : reduction_rows()) sweep(row, dtypes_of(row));
}

TEST_CASE("a row is a fold or a state, and states what it is") {
  for (const ReductionInfo& row : reduction_rows()) {
    INFO(row.name);
    CHECK(row.fold.has_value() == row.state.empty());
    CHECK(row.fold.has_value() == row.merge.empty());
    CHECK(row.define != nullptr);
    CHECK((row.fold || row.partials != Partials::Fold));  // pieces that are cut start with a fold's neutral element
    CHECK((!row.fold || !row.cuda.empty()));
    CHECK(find_reduction(row.name).has_value());
    // Pieces of a row have one buffer for each result, read as the operand of a fold, or as moments.
    const Reduction reduction = *find_reduction(row.name);
    CHECK((partials_of(reduction) != Partials::Moments || form(reduction).results.size() == 2));
    CHECK((!row.has_empty_value || form(reduction).results.size() == 1));
  }
}

TEST_CASE("states have the size of their structs") {
  CHECK(state_bytes(Reduction::Sum, DType::BF16) == 4);
  CHECK(state_bytes(Reduction::Max, DType::F64) == 8);
  CHECK(state_bytes(Reduction::Any, DType::F64) == 1);
  CHECK(state_bytes(Reduction::ArgMax, DType::U8) == 16);
  CHECK(state_bytes(Reduction::SoftmaxSum, DType::F64) == 16);
  CHECK(state_bytes(Reduction::Welford, DType::F32) == 12);
  CHECK(state_bytes(Reduction::Welford, DType::F64) == 24);
}

TEST_CASE("a reduction is one row") {
  const ReductionInfo parity{.name = "parity", .fold = ScalarOp::BitXor, .start = "0", .define = [](DType dtype, std::span<const Scalar> x) {
                               int64_t bits = 0;
                               for (const Scalar& element : x) bits ^= element.integer();
                               return std::vector<Scalar>{Scalar::from_integer(dtype, bits)};
                             }};
  sweep(parity, {DType::I8, DType::I64, DType::U64, DType::Bool});
  const ReductionInfo range{.name = "range",
                            .state = "low:T high:T",
                            .results = "width:T",
                            .start = "low = highest, high = lowest",
                            .lift = "low = x, high = x",
                            .merge = "low = minimum(a.low, b.low), high = maximum(a.high, b.high)",
                            .finish = "width = sub(high, low)",
                            .define = [](DType dtype, std::span<const Scalar> x) {
                              Scalar low = highest_value(dtype), high = lowest_value(dtype);
                              for (const Scalar& element : x) {
                                low = evaluate(ScalarOp::Minimum, std::vector{low, element});
                                high = evaluate(ScalarOp::Maximum, std::vector{high, element});
                              }
                              return std::vector<Scalar>{evaluate(ScalarOp::Sub, std::vector{high, low})};
                            }};
  sweep(range, {DType::F32, DType::F64, DType::I32});
}

TEST_CASE("statements that are not valid are refused") {
  CHECK_THAT(refusal("s:T", "s = 0", "s = x", "s = add(a.s, b.t)"), mentions("merge: b.t is neither an input nor assigned before; known: a.s, b.s"));
  CHECK_THAT(refusal("s:T", "s = 0", "s = x", "s = plus(a.s, b.s)"), mentions("no op is called plus"));
  CHECK_THAT(refusal("s:T", "s = 0", "s = x", "s = add(a.s)"), mentions("add takes 2 operands, found 1"));
  CHECK_THAT(refusal("s:T", "s = 0", "s = x", ""), mentions("no statement assigns s"));
  CHECK_THAT(refusal("s:T", "s = 0, s = 1", "s = x", "s = a.s"), mentions("s is assigned twice"));
  CHECK_THAT(refusal("s:T n:i64", "s = 0, n = 0", "s = x, n = x", "s = a.s, n = a.n"), mentions("n expects i64, found T"));
  CHECK_THAT(refusal("s:T n:i64", "s = 0, n = 0", "s = x, n = at", "s = add(a.s, a.n), n = a.n"), mentions("add expects T, found i64"));
  CHECK_THAT(refusal("s:T", "s = 0", "s = where(x, x, x)", "s = a.s"), mentions("where expects bool, found T"));
  CHECK_THAT(refusal("s:T", "s = add(0, 1)", "s = x", "s = a.s"), mentions("add of literals alone has no type"));
  CHECK_THAT(refusal("s:T", "t = 0, s = t", "s = x", "s = a.s"), mentions("t is a literal without a type"));
  CHECK_THAT(refusal("s:q", "s = 0", "s = x", "s = a.s"), mentions("T or a dtype"));
  CHECK_THAT(refusal("s", "s = 0", "s = x", "s = a.s"), mentions("expected ':'"));
  CHECK_THAT(refusal("", "", "", ""), mentions("expected names with types, found none"));
  CHECK_THAT(refusal("s:T", "s = 0 s", "s = x", "s = a.s"), mentions("',' or the end"));
}
