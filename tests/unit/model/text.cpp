#include "model/text.h"

#include "model/verify.h"
#include "support/error.h"
#include "unit/catch.h"

namespace cxxinductor::model {
namespace {

constexpr const char* everything = R"(calls @f on cuda:0 where 1 <= s0 <= 64, 0 <= u0 <= 512, 8 | s0 {
  input %x: f32[s0, 8] strides [1, s0] offset(4) storage 1 donated from "L['x']"
  input %z: c64[4] storage 2 conjugate negative frozen
  input %i: i64[s0] on cpu given strides [2]
  input %n: symint(s0)
  input %g: object
  %3.a: f32[s0, 8] storage 3, %6: none = "aten::add.Tensor"(%x, [%x, none, 2], alpha = 1.5) from "model.py":3 "h.0" "aten.add"
  %rows: i64[u0], %count: symint(u0), %f: symfloat, %b: symbool = "aten::pick"(%i, expr(2*s0), "text", f32) list ordered
  "my::op.out"(%g, device(cuda:0), handle(0))
  final %x = %3.a
  return %3.a flexible, expr(s0), none, 3, %rows
}
)";

CallGraph tensor_and_sum() {
  CallGraph calls;
  calls.name = "f";
  CallValueInfo x;
  x.name = "x";
  x.sizes = {4};
  x.strides = {1};
  calls.values = {x, x};
  calls.values[1].name = "y";
  calls.inputs = {0};
  calls.calls.push_back({.callee = "aten::add", .overload = "Tensor", .args = {OperandRef{0}, 1.5}, .results = {1}});
  calls.outputs = {OperandRef{1}};
  return calls;
}

}  // namespace

TEST_CASE("call graphs print what they were parsed from") { CHECK(print(parse(everything)) == everything); }

TEST_CASE("a parsed call graph has every field") {
  const CallGraph calls = parse(everything);
  CHECK(calls.inputs.size() == 5);
  CHECK(calls.donated == std::set<uint32_t>{0});
  CHECK(calls.frozen == std::set<uint32_t>{1});
  CHECK(calls.input_strides.at(2) == std::vector<sym::Expr>{2});
  CHECK(calls.input_sources[0] == "L['x']");
  CHECK(calls.values[0].storage_offset.is_constant(4));
  CHECK(calls.values[1].conjugate);
  CHECK(calls.values[1].negative);
  CHECK(calls.values[2].device == Device());
  CHECK(calls.values[3].kind == CallValueInfo::Kind::SymInt);
  CHECK(calls.values[4].kind == CallValueInfo::Kind::Opaque);
  CHECK(full_name(calls.calls[0]) == "aten::add.Tensor");
  CHECK(describe(calls, calls.calls[0]) == "aten::add.Tensor (model.py:3)");
  CHECK(calls.calls[1].result_is_list);
  CHECK(calls.calls[1].ordered);
  CHECK(calls.flexible_outputs == std::set<uint32_t>{0});
  CHECK(calls.mutations == std::vector<std::pair<uint32_t, CallValue>>{{0, 5}});
}

TEST_CASE("values without a name print as their number") {
  CallGraph calls = tensor_and_sum();
  calls.values[1].name = "";
  CHECK(print(calls) ==
        "calls @f {\n"
        "  input %x: f32[4]\n"
        "  %1: f32[4] = \"aten::add.Tensor\"(%x, 1.5)\n"
        "  return %1\n"
        "}\n");
}

TEST_CASE("bad text of a call graph is an error with its place") {
  const auto message = [](const char* text) {
    try {
      parse(text);
      return std::string("parsed");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK_THAT(message("calls @f { return %x }"), mentions("line 1, column 19") && mentions("there is no %x"));
  CHECK_THAT(message("calls @f { input %x: f32[2] strides [1, 1] return }"), mentions("expected 1 strides"));
  CHECK_THAT(message("calls @f { input %x: f32[2] input %x: f32[2] return }"), mentions("%x is defined above"));
  CHECK_THAT(message("calls @f { %y: f32[2] = \"aten::neg\"(%y) return %y }"), mentions("there is no %y"));
  CHECK_THAT(message("calls @f { input %x: f32[2] %y: f32[2] = \"aten::neg\"($0) return %y }"), mentions("an argument"));
  CHECK_THAT(message("calls @f { input %x: f32[2] %y: f32[2] = \"neg\"(%x) return %y }"), mentions("C6"));
  const std::string name(5000, 'g');
  const std::string long_names = "calls @f { input %x: f32[2] \"higher_order::cond\"(%x, \"" + name + "\", \"" + name + "\", [%x]) return %x }";
  CHECK_THAT(message(long_names.c_str()), mentions("C11"));
  CHECK(message(long_names.c_str()).size() < 2000);
  CHECK_THAT(message("calls @f { final %x = %x return }"), mentions("there is no %x"));
  CHECK_THAT(message("calls @f { return \"text\" }"), mentions("C8"));
  CHECK_THAT(message("calls @f { return expr(s0) }"), mentions("C9") && mentions("s0"));
  CHECK_THAT(message("graph @f"), mentions("'calls'"));
}

TEST_CASE("every invariant of call graphs is checked") {
  const auto first = [](const auto& damage) {
    CallGraph calls = tensor_and_sum();
    REQUIRE(verify(calls).empty());
    damage(calls);
    const std::vector<std::string> messages = verify(calls);
    return messages.empty() ? std::string("valid") : messages.front().substr(0, messages.front().find(':'));
  };
  CHECK(first([](CallGraph& calls) { calls.inputs = {7}; }) == "C1");
  CHECK(first([](CallGraph& calls) { calls.calls[0].args = {OperandRef{9}}; }) == "C1");
  CHECK(first([](CallGraph& calls) { calls.donated = {3}; }) == "C1");
  CHECK(first([](CallGraph& calls) { calls.mutations = {{0, 5}}; }) == "C1");
  CHECK(first([](CallGraph& calls) { calls.flexible_outputs = {1}; }) == "C1");
  CHECK(first([](CallGraph& calls) { calls.inputs = {0, 0}; }) == "C2");
  CHECK(first([](CallGraph& calls) { calls.values.push_back(calls.values[0]), calls.values[2].name = "unused"; }) == "C2");
  CHECK(first([](CallGraph& calls) { calls.calls[0].args = {OperandRef{1}}; }) == "C3");
  CHECK(first([](CallGraph& calls) { calls.values[1].name = "x"; }) == "C4");
  CHECK(first([](CallGraph& calls) { calls.values[1].name = "a b"; }) == "C4");
  CHECK(first([](CallGraph& calls) { calls.values[1].strides = {}; }) == "C5");
  CHECK(first([](CallGraph& calls) { calls.input_strides[0] = {1, 2}; }) == "C5");
  CHECK(first([](CallGraph& calls) { calls.calls[0].callee = "add"; }) == "C6");
  CHECK(first([](CallGraph& calls) { calls.calls[0].kwargs = {{"alpha", Arg(1.0)}, {"alpha", Arg(2.0)}}; }) == "C6");
  CHECK(first([](CallGraph& calls) { calls.mutations = {{0, 1}, {0, 1}}; }) == "C7");
  CHECK(first([](CallGraph& calls) {
          calls.values[1].dtype = DType::F64;
          calls.mutations = {{0, 1}};
        }) == "C7");
  CHECK(first([](CallGraph& calls) { calls.outputs = {Arg(true)}; }) == "C8");
  CHECK(first([](CallGraph& calls) { calls.outputs = {Arg(sym::Expr::symbol("s0"))}; }) == "C9");
  CHECK(first([](CallGraph& calls) { calls.donated = calls.frozen = {0}; }) == "C10");
}

}  // namespace cxxinductor::model
