// Calls as ATen's composites make them, as text.
#include "torch_bridge/replay/replay.h"

#include <algorithm>

#include "ir/text_parts.h"
#include "model/text.h"
#include "model/verify.h"
#include "support/error.h"
#include "unit/catch.h"

namespace {

using namespace cxxinductor;
using torch_bridge::replay;
using torch_bridge::Replayed;

Replayed replayed(const std::string& text) {
  Replayed result = replay(model::parse(text));
  CHECK(model::verify(result.calls).empty());
  return result;
}

// The calls alone, without results' types: "mm(%x, %t)".
std::string calls_of(const Replayed& result) {
  std::string text;
  for (const model::Call& call : result.calls.calls) text += model::full_name(call) + "\n";
  return text;
}

std::string type_of(const Replayed& result, size_t output) {
  const model::CallValueInfo& info = result.calls.values[result.calls.outputs.at(output).as<OperandRef>()->operand];
  return std::string(to_string(info.dtype)) + print_expr_list(info.sizes) + " " + print_expr_list(info.strides);
}

}  // namespace

TEST_CASE("composites become the calls that eager makes") {
  const Replayed result = replayed(R"(calls @f {
  input %x: f32[3, 8]
  input %weight: f32[4, 8]
  input %bias: f32[4]
  %1: f32[3, 4] = "aten::linear"(%x, %weight, %bias)
  %2: f32[3, 4] = "aten::dropout"(%1, 0.5, false)
  %3: f32[3, 4] = "aten::layer_norm"(%2, [4])
  %4: f32[3, 4] = "aten::softmax.int"(%3, -1)
  return %4
})");
  CHECK(calls_of(result) == "aten::t\naten::addmm\naten::native_layer_norm\naten::_softmax\n");
  CHECK(type_of(result, 0) == "f32[3, 4] [4, 1]");
  CHECK(result.guards.empty());
  CHECK(result.kept.empty());
}

TEST_CASE("symbolic sizes stay symbolic") {
  const Replayed result = replayed(R"(calls @f where 2 <= b <= 64, 4 <= n <= 60 {
  input %x: f32[b, n, 8]
  input %weight: f32[12, 8]
  input %y: f32[b, 12, n]
  %1: f32[b, n, 12] = "aten::linear"(%x, %weight)
  %2: f32[b, n, n] = "aten::matmul"(%1, %y)
  %3: f32[b*n, n] = "aten::flatten.using_ints"(%2, 0, 1)
  %4: f32[b*n, n] = "aten::contiguous"(%3)
  return %4
})");
  CHECK(result.guards.empty());
  CHECK(type_of(result, 0) == "f32[b*n, n] [n, 1]");
  const std::string calls = calls_of(result);
  INFO(calls);
  CHECK(calls.find("aten::bmm\n") != std::string::npos);
  CHECK(calls.find("clone") == std::string::npos);
}

TEST_CASE("symbolic numbers stay symbolic") {
  const Replayed result = replayed(R"(calls @f where 2 <= n {
  input %x: f32[4]
  input %number: symint(n)
  %1: f32[4] = "aten::add.Tensor"(%x, expr(n))
  %2: f32[4] = "aten::mul.Scalar"(%1, expr(n))
  return %2
})");
  CHECK(result.guards.empty());
  CHECK(calls_of(result) == "aten::add.Tensor\naten::mul.Scalar\n");
}

TEST_CASE("what hints decide is a guard") {
  const Replayed result = replay(model::parse(R"(calls @f where 1 <= a <= 64, 1 <= b <= 64 {
  input %x: f32[a]
  input %y: f32[b]
  %1: f32[a] = "aten::add.Tensor"(%x, %y)
  return %1
})"),
                                 {{"a", 8}, {"b", 8}});
  const auto at = [&](int64_t a, int64_t b) {
    return std::all_of(result.guards.begin(), result.guards.end(),
                       [&](const model::SizeGuard& guard) { return model::holds(guard, [&](std::string_view name) { return name == "a" ? a : b; }); });
  };
  CHECK(at(8, 8));
  CHECK(at(3, 3));
  CHECK_FALSE(at(3, 4));  // eager raises
}

TEST_CASE("a composite that reads elements stays one call") {
  const Replayed result = replayed(R"(calls @f {
  input %x: i64[3]
  %1: i64[3, 5] = "aten::one_hot"(%x)
  return %1
})");
  CHECK(calls_of(result) == "aten::one_hot\n");
  CHECK(result.kept.contains("aten::one_hot"));
  CHECK(type_of(result, 0) == "i64[3, 5] [5, 1]");
  const Replayed given = replayed(R"(calls @f {
  input %x: i64[3]
  %1: i64[3, 5] = "aten::one_hot"(%x, 5)
  return %1
})");
  CHECK(calls_of(given) == "aten::arange\naten::unsqueeze\naten::eq.Tensor\naten::_to_copy\n");
}

TEST_CASE("writes keep their tensor") {
  const Replayed result = replayed(R"(calls @f {
  input %x: f32[3]
  %1: f32[3] = "aten::clone"(%x)
  %2: f32[3] = "aten::relu_"(%1)
  %3: f32[3] = "aten::mul.Tensor"(%1, %2)
  return %3
})");
  CHECK(calls_of(result) == "aten::clone\naten::relu_\naten::mul.Tensor\n");
  const model::Call& multiply = result.calls.calls.back();
  CHECK(multiply.args[0] == multiply.args[1]);
}

TEST_CASE("metadata is eager's, whatever a file states") {
  const Replayed result = replayed(R"(calls @f {
  input %x: f32[3]
  %1: i64[4] = "aten::relu"(%x)
  return %1
})");
  CHECK(type_of(result, 0) == "f32[3] [1]");
  CHECK_THROWS_AS(replay(model::parse(R"(calls @f {
  input %x: f32[3]
  input %y: f32[4]
  %1: f32[3] = "aten::add.Tensor"(%x, %y)
  return %1
})")),
                  UserError);
}

TEST_CASE("assertions on metadata are checked once") {
  const Replayed result = replayed(R"(calls @f {
  input %x: f32[3]
  "aten::_assert_tensor_metadata"(%x, none, none, f32)
  return %x
})");
  CHECK(result.calls.calls.empty());
  CHECK_THROWS_AS(replay(model::parse(R"(calls @f {
  input %x: f32[3]
  "aten::_assert_tensor_metadata"(%x, none, none, f16)
  return %x
})")),
                  UserError);
}
