// Calls over lists of tensors, and the CPU scalars that optimisers' calls on CUDA take.
#include "unit/catch.h"
#include "unit/frontend/calls.h"

namespace cxxinductor::frontend {
namespace {

using D = DType;
using Lines = std::vector<std::string>;

Lines import_foreach(Calls& calls, const std::string& name, std::vector<Arg> args, std::vector<TensorType> results,
                     std::vector<std::pair<std::string, Arg>> kwargs = {}) {
  const auto made = calls.call_many(name, std::move(args), std::move(results), std::move(kwargs));
  calls.graph.calls.back().result_is_list = true;
  for (const Arg& value : made) calls.output(value);
  return body_of(graph::print(calls.import()));
}

}  // namespace

TEST_CASE("foreach calls are the op at each position of their lists") {
  const std::vector<TensorType> types{{D::F32, {4}}, {D::F32, {2, 3}}};
  const auto lists = [&](Calls& calls) {
    const Arg a = calls.input("a", types[0]), b = calls.input("b", types[1]);
    const Arg x = calls.input("x", types[0]), y = calls.input("y", types[1]);
    return std::pair(ArgList{a, b}, ArgList{x, y});
  };
  {
    Calls calls;
    const auto [a, x] = lists(calls);
    CHECK(import_foreach(calls, "aten::_foreach_mul.Scalar", {a, 0.5}, types) == Lines{"%0 = mul(%a, 0.5)", "%1 = mul(%b, 0.5)"});
  }
  {
    Calls calls;
    const auto [a, x] = lists(calls);
    CHECK(import_foreach(calls, "aten::_foreach_mul.ScalarList", {a, ArgList{0.5, 2.0}}, types) == Lines{"%0 = mul(%a, 0.5)", "%1 = mul(%b, 2.0)"});
  }
  {
    Calls calls;
    const auto [a, x] = lists(calls);
    CHECK(import_foreach(calls, "aten::_foreach_add.List", {a, x}, types, {{"alpha", Arg(3.0)}}) ==
          Lines{"%0 = add_alpha(%a, %x, 3.0)", "%1 = add_alpha(%b, %y, 3.0)"});
  }
  {
    Calls calls;
    const auto [a, x] = lists(calls);
    CHECK(import_foreach(calls, "aten::_foreach_addcdiv.Scalar", {a, x, x, -2.0}, types) ==
          Lines{"%0 = addcdiv(%a, %x, %x, -2.0)", "%1 = addcdiv(%b, %y, %y, -2.0)"});
  }
  {
    Calls calls;
    const auto [a, x] = lists(calls);
    CHECK(import_foreach(calls, "aten::_foreach_pow.ScalarAndTensor", {0.9, a}, types).size() == 2);
    CHECK(import_foreach(calls, "aten::_foreach_sqrt", {a}, types).back() == "%3 = sqrt(%b)");
  }
}

TEST_CASE("a scalar on the CPU is an operand of what runs on CUDA, as it is") {
  Calls calls;
  const Arg x = calls.input("x", {D::F32, {4}}), rate = calls.input_on(kCpu, "rate", {D::F32, {}});
  CHECK(body_of(calls.text(calls.call("aten::mul.Tensor", {x, rate}, {D::F32, {4}}))) == Lines{"%0 = mul(%x, %rate)"});
}

TEST_CASE("what computes with tensors on the CPU beside a GPU's is a node there, or a call without CPU kernels") {
  Calls calls;
  const Arg x = calls.input("x", {D::F32, {4}}), rate = calls.input_on(kCpu, "rate", {D::F32, {}});
  const Arg twice = calls.call_on(kCpu, "aten::add.Tensor", {rate, rate}, {D::F32, {}});
  calls.output(calls.call("aten::mul.Tensor", {x, twice}, {D::F32, {4}}));
  CHECK(body_of(graph::print(calls.import())) == Lines{"%0 = add(%rate, %rate)", "%1 = mul(%x, %0)"});
  calls.environment.cpu_kernels = false;
  const Lines lines = body_of(graph::print(calls.import()));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("extern \"aten::add.Tensor\"") != std::string::npos);
  CHECK(lines[1].find("mul(%x, %") != std::string::npos);
}

TEST_CASE("a scalar on the CPU is held in the type that a kernel computes in") {
  Calls calls;
  const Arg x = calls.input("x", {D::BF16, {4}}), rate = calls.input_on(kCpu, "rate", {D::F32, {}});
  CHECK(body_of(calls.text(calls.call("aten::mul.Tensor", {x, rate}, {D::BF16, {4}}))) == Lines{"%0 = mul(%x, %rate)"});
}

}  // namespace cxxinductor::frontend
