// What users register (ir/registered_ops.h): names, refusals, values.
#include "ir/registered_ops.h"

#include <thread>

#include "ir/graph/text.h"
#include "support/error.h"
#include "unit/catch.h"

using namespace cxxinductor;

namespace {

std::string refusal(const RegisteredOp& op) {
  try {
    add_scalar_op(op);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

const RegisteredOp cube{
    .overload = "tests::cube", .arguments = {"x"}, .types = OperandTypes::Numeric, .cpu = "({0} * {0} * {0})", .definition = "result = mul(mul(x, x), x)"};

}  // namespace

TEST_CASE("a registered op is found by its names, and evaluated by its definition") {
  const ScalarOp op = add_scalar_op(cube);
  CHECK(find_registered_scalar_op("tests::cube") == op);
  CHECK(find_scalar_op("tests.cube") == op);
  CHECK(info(op).name == "tests.cube");
  CHECK(info(op).registered);
  CHECK(add_scalar_op(cube) == op);
  CHECK(can_evaluate(op, {}));
  CHECK(evaluate(op, std::vector{Scalar::from_integer(DType::I32, -3)}).integer() == -27);
  CHECK(evaluate(op, std::vector{Scalar::from_real(DType::F32, 0.5)}).real() == 0.125);
  CHECK(!registered_text(op).empty());
  CHECK(registered_text(ScalarOp::Add).empty());
  CHECK(!find_registered_scalar_op("tests::sphere"));
}

TEST_CASE("a registered op is part of the text form") {
  add_scalar_op(cube);
  const std::string text = "graph @g(%x: f32[4]) {\n  %0 = tests.cube(%x)\n  return %0\n}\n";
  CHECK(graph::print(graph::parse(text)) == text);
}

TEST_CASE("an op without a definition is not evaluated") {
  const ScalarOp op = add_scalar_op({.overload = "tests::unknown_meaning", .arguments = {"x"}, .cpu = "f({0})"});
  CHECK(!can_evaluate(op, {}));
  CHECK_THROWS_WITH(evaluate(op, std::vector{Scalar::from_real(DType::F32, 1)}), mentions("tests.unknown_meaning cannot be evaluated"));
}

TEST_CASE("registrations that are not valid are refused") {
  CHECK_THAT(refusal({.overload = "cube", .arguments = {"x"}, .cpu = "{0}"}), mentions("such as mylib::swish, found 'cube'"));
  CHECK_THAT(refusal({.overload = "aten::relu", .arguments = {"x"}, .cpu = "{0}"}), mentions("aten::relu is an op of PyTorch"));
  CHECK_THAT(refusal({.overload = "tests::a b", .arguments = {"x"}, .cpu = "{0}"}), mentions("found 'tests::a b'"));
  CHECK_THAT(refusal({.overload = "tests::none", .arguments = {}, .cpu = "1"}), mentions("expected one to five operands, found 0"));
  CHECK_THAT(refusal({.overload = "tests::none", .arguments = {"x"}}), mentions("expected an expression"));
  CHECK_THAT(refusal({.overload = "tests::none", .arguments = {"x", "y"}, .cuda = "f({0})"}), mentions("expected {1} in the expression for CUDA"));
  CHECK_THAT(refusal({.overload = "tests::none", .arguments = {"x"}, .cpu = "[]{ return {0}; }()"}), mentions("braces that are no operand"));
  CHECK_THAT(refusal({.overload = "tests::none", .arguments = {"x"}, .cpu = "{0}", .definition = "result = y"}),
             mentions("tests::none, definition: y is neither an input nor assigned before; known: x"));
  CHECK_THAT(refusal({.overload = "tests::none", .arguments = {"x"}, .cpu = "{0}", .definition = "result = sigmiod(x)"}),
             mentions("tests::none, definition: no op is called sigmiod; did you mean sigmoid?"));
  CHECK_THAT(refusal({.overload = "tests::none", .arguments = {"x"}, .cpu = "{0}", .definition = "result = lt(x, 1)"}),
             mentions("result expects T, found bool"));
  add_scalar_op(cube);
  RegisteredOp other = cube;
  other.cpu = "{0}";
  CHECK_THAT(refusal(other), mentions("tests::cube is registered already, with another definition"));
}

TEST_CASE("a definition can be evaluated for the types that are stated") {
  const auto with = [](const char* name, OperandTypes types, const char* definition) {
    return RegisteredOp{.overload = name, .arguments = {"x"}, .types = types, .cpu = "{0}", .definition = definition};
  };
  CHECK_THAT(refusal(with("tests::root", OperandTypes::Integral, "result = sqrt(x)")), mentions("include i64") && mentions("the definition has sqrt"));
  CHECK_THAT(refusal(with("tests::half", OperandTypes::Numeric, "result = mul(x, 0.5)")), mentions("include i64") && mentions("the definition has mul"));
  CHECK_THAT(refusal(with("tests::nan", OperandTypes::Integral, "result = nan")), mentions("i64"));
  CHECK_NOTHROW(add_scalar_op(with("tests::halved", OperandTypes::Floating, "result = mul(x, 0.5)")));
  CHECK_NOTHROW(add_scalar_op(with("tests::doubled", OperandTypes::Integral, "result = mul(x, 2)")));
}

TEST_CASE("a registered reduction has the form of its texts") {
  const RegisteredReduction range{.overload = "tests::range",
                                  .state = "low:T high:T",
                                  .results = "range:T",
                                  .start = "low = highest, high = lowest",
                                  .lift = "low = x, high = x",
                                  .merge = "low = minimum(a.low, b.low), high = maximum(a.high, b.high)",
                                  .finish = "range = sub(high, low)",
                                  .order_matters = false};
  const Reduction reduction = add_reduction(range);
  CHECK(find_registered_reduction("tests::range") == reduction);
  CHECK(find_reduction("tests.range") == reduction);
  CHECK(state_bytes(reduction, DType::F64) == 16);
  CHECK(partials_of(reduction) == Partials::None);
  std::vector<Scalar> state = form(reduction).initial_state(DType::F32);
  for (double x : {1.0, -2.0, 5.0}) form(reduction).update(state, Scalar::from_real(DType::F32, x), 0);
  CHECK(form(reduction).finished(state).front().real() == 7);
}

TEST_CASE("a registered reduction says which operands it does not take, and names components once") {
  RegisteredReduction norm{.overload = "tests::norm",
                           .state = "sum:T",
                           .results = "norm:T",
                           .start = "sum = 0",
                           .lift = "sum = mul(x, x)",
                           .merge = "sum = add(a.sum, b.sum)",
                           .finish = "norm = sqrt(sum)",
                           .order_matters = false};
  const ReductionForm& made = form(add_reduction(norm));
  CHECK(made.refuses(DType::F32) == std::nullopt);
  CHECK(made.refuses(DType::I64) == ScalarOp::Sqrt);
  norm.overload = "tests::other_norm";
  norm.state = "sum:T sum:T";
  CHECK_THROWS_WITH(add_reduction(norm), mentions("the component sum is declared twice"));
  norm.state = "sum:i63 n:T";
  CHECK_THROWS_WITH(add_reduction(norm), mentions("state: ") && mentions("column 5: expected T or a dtype"));
  norm.state = "sum:i64";
  norm.lift = "sum = 1";
  norm.finish = "norm = cast<T>(sqrt(sum))";
  CHECK_THROWS_WITH(add_reduction(norm), mentions("sqrt takes no i64"));
}

TEST_CASE("threads register and read rows at the same time") {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 40; ++i) {
        const std::string name = "tests::many" + std::to_string(i);
        const ScalarOp op = add_scalar_op({.overload = name, .arguments = {"x"}, .cpu = "{0}"});
        if (find_registered_scalar_op(name) != op || !info(op).registered) std::abort();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(find_registered_scalar_op("tests::many39").has_value());
}
