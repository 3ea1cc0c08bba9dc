// Symbols that steps of a call define: sizes of results, values of tensors, what is computed from them, and assertions.
#include "unit/catch.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;
using namespace cxxinductor::runtime;
using Kind = plan::Buffer::Kind;

namespace {

const sym::Expr u0 = sym::Expr::symbol("u0");

// Those of the elements that are positive.
void choose(PlainHost& host, const plan::CallExtern&, std::span<const Operand> operands, std::span<const TensorView>, std::span<TensorRef> results) {
  std::vector<Scalar> found;
  for (const Scalar& element : read_elements(operands[0].tensor))
    if (element.as_real() > 0) found.push_back(element);
  results[0] = make_tensor(host, {static_cast<int64_t>(found.size())});
  write_elements(view_of(results[0]), found);
}

TensorRef numbers(PlainHost& host, const std::vector<double>& values, DType dtype = DType::F32) {
  TensorRef made = make_tensor(host, {static_cast<int64_t>(values.size())}, {}, dtype);
  std::vector<Scalar> elements;
  for (double value : values) elements.push_back(cast(Scalar::from_real(DType::F64, value), dtype));
  write_elements(view_of(made), elements);
  return made;
}

}  // namespace

TEST_CASE("a result's size is a symbol: memory, grids and arguments come after it", "[runtime]") {
  PlanBuilder b;
  b.plan.assumptions.set_range("u0", {0, 4});
  const auto x = b.input("x", {6});
  const auto chosen = b.buffer("chosen", Kind::ExternOwned, {u0});
  const auto between = b.buffer("between", Kind::Arena, {u0});
  const auto y = b.buffer("y", Kind::Standalone, {u0});
  const auto k = b.kernel("add_one", 2, {false, true}, {"n"});
  b.call("aten::choose", {b.whole(x)}, {chosen}, false).defines.push_back({"u0", 0, 0});
  b.launch(k, {chosen, between}, {u0}, u0);
  b.plan.steps.emplace_back(plan::Allocate{y});
  b.launch(k, {between, y}, {u0}, u0);
  b.output(y);
  b.plan.outputs.push_back({plan::Output::Kind::Symbol, {}, {}, 2 * u0});
  PlainHost host(1, choose);
  const Executable executable(b.plan, std::make_shared<FunctionProvider>(std::vector<KernelBody>{add_one}), host);
  for (const std::vector<double>& values : {std::vector<double>{1, -1, 3, -2, 5, 0}, {-1, -1, -1, -1, -1, -1}, {-1, -1, -1, 7, -1, -1}}) {
    std::vector<double> expected;
    for (double value : values)
      if (value > 0) expected.push_back(value + 2);
    const std::vector<Value> outputs = executable.run(host, one_input(numbers(host, values)));
    CHECK(numbers_of(outputs[0].tensor) == expected);
    CHECK(outputs[1].integer == 2 * static_cast<int64_t>(expected.size()));
  }
  CHECK_THROWS_WITH(executable.run(host, one_input(numbers(host, {1, 2, 3, 4, 5, -1}))), "Runtime assertion failed for expression u0 <= 4: u0 is 5");
}

TEST_CASE("a tensor's element is a symbol, and assertions raise with their message alone", "[runtime]") {
  PlanBuilder b;
  const auto x = b.input("x", {3}, {}, DType::I64);
  b.plan.steps.emplace_back(plan::ReadScalar{"u0", {x, DType::I64, {}, {}, 1}, {}});
  b.plan.steps.emplace_back(plan::Assert{u0, "x[1] is not 0", {}});
  b.plan.outputs.push_back({plan::Output::Kind::Symbol, {}, {}, u0 * 3});
  PlainHost host;
  const Executable executable(b.plan, std::make_shared<FunctionProvider>(std::vector<KernelBody>{}), host);
  const auto run = [&](double value) { return executable.run(host, one_input(numbers(host, {9, value, 9}, DType::I64)))[0].integer; };
  CHECK(run(5) == 15);
  CHECK(run(-2) == -6);
  CHECK_THROWS_AS(run(0), FailedAssertion);
  CHECK_THROWS_WITH(run(0), "x[1] is not 0");
}
