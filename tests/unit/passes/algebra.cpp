// The identities of passes/graph/algebra.def, evaluated by the interpreter over all kinds of elements of every dtype that they admit.
#include "passes/graph/algebra.h"

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "interp/interp.h"
#include "passes/graph/passes.h"
#include "support/error.h"
#include "unit/catch.h"

using namespace cxxinductor;
using graph::ValueId;

namespace {

constexpr DType all_dtypes[] = {
#define DTYPE(name, ...) DType::name,
#include "ir/dtypes.def"
#undef DTYPE
};

std::vector<DType> dtypes_of(TypeSet set) {
  std::vector<DType> dtypes;
  for (DType dtype : all_dtypes)
    if (!is_opaque(dtype) && accepts(set, dtype)) dtypes.push_back(dtype);
  return dtypes;
}

// Both zeros, infinities, NaN, the smallest and largest normal and denormal numbers, integers at the ends of their range, random bits.
std::vector<Scalar> elements_of(DType dtype) {
  if (dtype == DType::Bool) return {Scalar::from_integer(dtype, 0), Scalar::from_integer(dtype, 1)};
  std::vector<Scalar> elements;
  const auto bits = [&](uint64_t value) { elements.push_back(scalar_from_bits(dtype, value)); };
  const int width = 8 * byte_size(dtype);
  const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1, sign = uint64_t{1} << (width - 1);
  if (width == 8)
    for (uint64_t value = 0; value <= mask; ++value) bits(value);
  for (uint64_t value : {uint64_t{0}, uint64_t{1}, sign - 1, sign, sign + 1, mask}) bits(value);
  for (double value : {0.0, 1.0, 1.5, -2.5, 1e30, std::numeric_limits<double>::infinity(), std::nan("")})
    if (is_float(dtype))
      for (double each : {value, -value}) elements.push_back(Scalar::from_real(dtype, each));
  std::mt19937_64 random(7);
  for (int i = 0; i < 500; ++i) bits(random() & mask);
  return elements;
}

graph::Operand build_term(graph::Builder& builder, const passes::Term& term, ValueId x) {
  const graph::Graph& graph = builder.graph();
  if (term.is_variable()) return x;
  if (term.constant) return Scalar::from_real(compute_type(graph.values[x].dtype), *term.constant);
  std::vector<graph::Operand> operands;
  for (const passes::Term& operand : term.operands) operands.push_back(build_term(builder, operand, x));
  return builder.elementwise(*term.op, std::move(operands));
}

// Makes an expression of x.
using Build = std::function<ValueId(graph::Builder& builder, ValueId x)>;

Build expression(passes::Term term) {
  return [term = std::move(term)](graph::Builder& builder, ValueId x) { return std::get<ValueId>(build_term(builder, term, x)); };
}
Build expression(std::string_view text) { return expression(passes::parse_term(text)); }

// Whether the expression gives back every element.
bool holds(const Build& build, DType dtype) {
  const std::vector<Scalar> elements = elements_of(dtype);
  const auto count = static_cast<int64_t>(elements.size());
  graph::Graph graph;
  graph::Builder builder(graph);
  const ValueId x = builder.input("x", dtype, {}, {count}, {1});
  builder.output(build(builder, x));
  return interp::run(graph, {{{dtype, {count}, elements}}, {}}).front().elements == elements;
}

// Whether the pass sees that the expression is x.
bool is_removed(const Build& build, DType dtype) {
  graph::Graph graph;
  graph::Builder builder(graph);
  const ValueId x = builder.input("x", dtype, {}, {4}, {1});
  const ValueId same = build(builder, x);
  builder.output(builder.elementwise(ScalarOp::Eq, {same, x}));
  passes::remove_no_ops(graph, {});
  const ValueId result = graph.outputs[0].value;
  return graph.nodes[graph.values[result].producer].operands[0] == graph::Operand(x);
}

}  // namespace

TEST_CASE("identities hold for every element of every dtype that they admit", "[passes]") {
  for (const passes::Identity& identity : passes::identities()) {
    const std::vector<DType> dtypes = dtypes_of(identity.dtypes);
    CHECK(dtypes.size() > 1);
    for (DType dtype : dtypes) {
      INFO(identity.text << " of " << to_string(dtype));
      CHECK(holds(expression(identity.term), dtype));
      CHECK(is_removed(expression(identity.term), dtype));
    }
  }
}

TEST_CASE("what is no identity is refuted by the elements and left by the pass", "[passes]") {
  struct Row {
    std::string_view text;
    std::vector<DType> dtypes;
  };
  const std::vector<DType> floats{DType::F64, DType::F32, DType::F16, DType::BF16};
  for (const Row& row : {Row{"add(x, 0)", floats}, Row{"sub(x, -0)", floats}, Row{"trunc_div(x, 1)", floats}, Row{"floor_div(x, 1)", floats},
                         Row{"mul(x, -1)", {DType::F32, DType::I32}}, Row{"sub(0, x)", {DType::F32, DType::I8}}, Row{"neg(x)", {DType::F32, DType::U8}},
                         Row{"div(1, x)", floats}, Row{"sub(x, x)", {DType::F32, DType::I64}}})
    for (DType dtype : row.dtypes) {
      INFO(row.text << " of " << to_string(dtype));
      CHECK_FALSE(holds(expression(row.text), dtype));
      CHECK_FALSE(is_removed(expression(row.text), dtype));
    }
}

TEST_CASE("operands of commutative ops stand in either order", "[passes]") {
  CHECK(is_removed(expression("mul(1, x)"), DType::F32));
  CHECK(is_removed(expression("add(-0, x)"), DType::BF16));
  CHECK(is_removed(expression("add(0, x)"), DType::I32));
  CHECK_FALSE(is_removed(expression("div(1, x)"), DType::F32));
}

TEST_CASE("conversions there and back keep every element where they are removed", "[passes]") {
  size_t removed = 0;
  const std::vector<DType> dtypes = dtypes_of(TypeSet::Any);
  for (DType narrow : dtypes)
    for (DType wide : dtypes) {
      if (narrow == wide) continue;
      const Build there_and_back = [&](graph::Builder& builder, ValueId x) { return builder.cast(builder.cast(x, wide), narrow); };
      if (!is_removed(there_and_back, narrow)) continue;
      ++removed;
      INFO(to_string(narrow) << " through " << to_string(wide));
      CHECK(holds(there_and_back, narrow));
    }
  CHECK(removed > 20);
  const Build through_half = [](graph::Builder& builder, ValueId x) { return builder.cast(builder.cast(x, DType::F16), DType::BF16); };
  CHECK_FALSE(is_removed(through_half, DType::BF16));
  CHECK_FALSE(holds(through_half, DType::BF16));
}

TEST_CASE("expressions of identities are checked", "[passes]") {
  for (std::string_view text : {"", "mul(x)", "mul(x, 1, 1)", "multiply(x, 1)", "mul(x, 1", "x x", "cast(x)"}) {
    INFO(text);
    CHECK_THROWS_AS(passes::parse_term(text), UserError);
  }
}
