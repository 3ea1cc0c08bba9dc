#include "model/decompose/decompose.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/decompose/fragment.h"
#include "model/text.h"
#include "model/verify.h"
#include "unit/catch.h"
#include "unit/model/aten_schemas.h"

namespace cxxinductor::model {
namespace {

CallGraph decomposed(const std::string& text) {
  CallGraph calls = decompose(parse(text), aten_schemas());
  CHECK(verify(calls).empty());
  CHECK(print(parse(print(calls))) == print(calls));
  return calls;
}

bool has(const CallGraph& calls, std::string_view callee) {
  return std::any_of(calls.calls.begin(), calls.calls.end(), [&](const Call& call) { return call.callee == callee; });
}

}  // namespace

TEST_CASE("a fragment takes the place of a call, and its sizes are symbols") {
  const CallGraph calls = decomposed(R"(calls @f where 2 <= s0 <= 64 {
  input %x: f32[s0, 3, 4]
  %y: f32[s0, 3, 7] = "aten::reflection_pad1d"(%x, [1, 2])
  %z: f32[s0, 3, 7] = "aten::exp"(%y)
  return %y, %z
})");
  CHECK_FALSE(has(calls, "aten::reflection_pad1d"));
  CHECK(has(calls, "aten::index"));
  const CallValueInfo& result = calls.values[calls.outputs[0].as<OperandRef>()->operand];
  CHECK(result.name == "y");
  CHECK(result.sizes == std::vector<sym::Expr>{sym::Expr::symbol("s0"), 3, 7});
  CHECK(calls.calls.back().args[0].as<OperandRef>()->operand == calls.outputs[0].as<OperandRef>()->operand);
}

TEST_CASE("results keep the strides that the call has") {
  const CallGraph calls = decomposed(R"(calls @f {
  input %x: f32[2, 3, 4, 5]
  %y: f32[2, 3, 6, 6] strides [108, 1, 18, 3] = "aten::replication_pad2d"(%x, [1, 0, 1, 1])
  return %y
})");
  CHECK_FALSE(has(calls, "aten::replication_pad2d"));
  const CallValueInfo& result = calls.values[calls.outputs[0].as<OperandRef>()->operand];
  CHECK(result.strides == std::vector<sym::Expr>{108, 1, 18, 3});
}

TEST_CASE("forms that a rule does not cover stay calls") {
  for (const char* call : {R"(%y: f32[] = "aten::mse_loss"(%x, %i))", R"(%y: f32[3] = "aten::linalg_vector_norm"(%x, 2, [1]))"}) {
    const std::string text = fmt::format("calls @f {{ input %x: f32[3, 4] input %i: i64[3, 4] {} return %y }}", call);
    CHECK(print(decomposed(text)) == print(parse(text)));
  }
}

TEST_CASE("what nobody asked for has no calls") {
  const CallGraph calls = decomposed(R"(calls @f {
  input %g: f32[3, 4]
  input %x: f32[3, 4]
  input %mean: f32[3, 1]
  input %rstd: f32[3, 1]
  %dx: f32[3, 4], %1: none, %2: none = "aten::native_layer_norm_backward"(%g, %x, [4], %mean, %rstd, none, none, [true, false, false])
  return %dx
})");
  CHECK_FALSE(has(calls, "aten::native_layer_norm_backward"));
}

TEST_CASE("calls of a fragment are decomposed in turn") {
  const CallGraph calls = decomposed(R"(calls @f {
  input %x: f32[3, 4]
  %n: f32[] = "aten::norm.Scalar"(%x, 3)
  %y: f32[] = "aten::exp"(%n)
  return %y, %n
})");
  CHECK_FALSE(has(calls, "aten::norm"));
  CHECK_FALSE(has(calls, "aten::linalg_vector_norm"));
  CHECK(has(calls, "aten::pow"));
  const CallValue norm = calls.outputs[1].as<OperandRef>()->operand;
  CHECK(calls.values[norm].name == "n");
  CHECK(calls.calls.back().args[0].as<OperandRef>()->operand == norm);
}

TEST_CASE("a rule whose fragment leads to its own op is an error that names it") {
  const CallGraph calls = parse(R"(calls @f { input %x: f32[3] %y: f32[3] = "aten::exp"(%x) return %y })");
  DecomposeTable table;
  table["aten::exp"] = [](Fragment& f) -> Replacement { return std::vector{f("aten::expm1", {f["self"]})}; };
  const CallGraph once = decompose(calls, aten_schemas(), table);
  CHECK(has(once, "aten::expm1"));
  table["aten::expm1"] = [](Fragment& f) -> Replacement { return std::vector{f("aten::exp", {f["self"]})}; };
  CHECK_THROWS_WITH(decompose(calls, aten_schemas(), table), mentions("aten::exp: its decomposition calls it again: aten::exp -> aten::expm1 -> aten::exp"));
}

TEST_CASE("operations with a rule are listed once, in order") {
  for (Fragments table : {Fragments::Decompositions, Fragments::RecomputeForms}) {
    const std::vector<std::string> ops = ops_with_fragments(table);
    CHECK_FALSE(ops.empty());
    CHECK(std::is_sorted(ops.begin(), ops.end()));
    CHECK(std::adjacent_find(ops.begin(), ops.end()) == ops.end());
  }
}

}  // namespace cxxinductor::model
