// A negative case for each invariant of the graph IR, and what the builder rejects.
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/ir/expect_text.h"

using namespace cxxinductor;
using namespace cxxinductor::graph;

namespace {

Graph sample() {
  return parse(R"(graph @f(%x: f32[s0, 4], %k: i64[3], sym s0) where 1 <= s0 {
    %a = exp(%x) from "model.py":7 "h" "aten.exp"
    %b = reduce<sum, dims=[1]>(%a)
    %c: f32[s0, 4], %d: i64[4] = extern "aten::f"($0, [$1]) with (%a, expr(s0))
    %e = permute<dims=[1, 0]>(%c)
    final %x = %c
    return %b
  })");
}
ValueId find(const Graph& g, std::string_view name) {
  for (size_t v = 0; v < g.values.size(); ++v)
    if (g.values[ValueId(v)].name == name) return ValueId(v);
  FAIL("no value " << name);
  return {};
}
Node& producer(Graph& g, std::string_view name) { return g.nodes[g.values[find(g, name)].producer]; }
Value& value(Graph& g, std::string_view name) { return g.values[find(g, name)]; }

template <class Edit>
std::string report_after(Edit edit) {
  Graph g = sample();
  edit(g);
  std::string all;
  for (const std::string& message : verify(g)) all += message + "\n";
  return all;
}

}  // namespace

TEST_CASE("what a scatter consumed is not read as it was", "[ir][graph]") {
  const auto report = [](const std::string& body) {
    try {
      parse("graph @f(%x: f32[8, 4], %y: f32[8, 4], %s: f32[2, 4], %i: i64[2]) {\n" + body + "}");
      return std::string();
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  const std::string update = "%a = scatter<target=[-1, 1], index_dims=[0], inplace>(%x, %s, %i)\n";
  CHECK(report("%o = exp(%x)\n" + update + "final %x = %a\nreturn %o\n") == "");
  CHECK(report(update + "%p = permute<dims=[1, 0]>(%a)\n%o = exp(%p)\nfinal %x = %a\nreturn %o\n") == "");
  check_contains(report(update + "%o = exp(%x)\nfinal %x = %a\nreturn %o\n"), "G11:");
  check_contains(report("%p = permute<dims=[1, 0]>(%x)\n" + update + "%o = exp(%p)\nfinal %x = %a\nreturn %o\n"), "G11:");
  check_contains(report(update + "final %x = %a\nreturn %x\n"), "G11:");
  check_contains(report(update + "final %x = %a\nfinal %y = %x\nreturn %a\n"), "G11:");
  check_contains(report("%w: f32[2, 4] = slice<dim=0, start=1, step=1>(%x)\n"
                        "%a = scatter<target=[-1, 1], index_dims=[0], inplace>(%x, %w, %i)\nfinal %x = %a\nreturn\n"),
                 "G11:");
  check_contains(report(update + "return %a\n"), "G12:");
  check_contains(report("%w: f32[4, 4] = slice<dim=0, start=1, step=1>(%x)\n"
                        "%a = scatter<target=[-1, 1], index_dims=[0], inplace>(%w, %s, %i)\nreturn %a\n"),
                 "G12:");
}

TEST_CASE("the verifier accepts a sound graph", "[ir][graph]") { CHECK(verify(sample()).empty()); }

TEST_CASE("each invariant of the graph IR has a counterexample", "[ir][graph]") {
  auto breaks = [](const char* invariant, auto edit) {
    INFO(invariant);
    check_contains(report_after(edit), std::string(invariant) + ":");
  };
  breaks("G1", [](Graph& g) { producer(g, "a").operands[0] = ValueId(99); });
  breaks("G1", [](Graph& g) { producer(g, "a").results[0] = ValueId(99); });
  breaks("G1", [](Graph& g) { g.outputs[0].value = ValueId(); });
  breaks("G1", [](Graph& g) { g.inputs[0].value = ValueId(); });
  breaks("G1", [](Graph& g) { g.mutations[0].input = 17; });
  breaks("G2", [](Graph& g) { value(g, "a").producer = NodeId(3); });
  breaks("G2", [](Graph& g) { value(g, "d").result_index = 0; });
  breaks("G2", [](Graph& g) { g.values.push_back({.layout = {}, .producer = {}, .name = "orphan"}); });
  breaks("G2", [](Graph& g) { g.inputs.push_back(g.inputs[0]); });
  breaks("G3", [](Graph& g) { producer(g, "a").operands[0] = find(g, "c"); });
  breaks("G4", [](Graph& g) { value(g, "a").name = "b"; });
  breaks("G4", [](Graph& g) { value(g, "a").name = "has blank"; });
  breaks("G4", [](Graph& g) { g.name = ""; });
  breaks("G4", [](Graph& g) { g.inputs[2].symbol = "2x"; });
  breaks("G5", [](Graph& g) { value(g, "a").layout.strides.pop_back(); });
  breaks("G6", [](Graph& g) { value(g, "b").sizes = {7}, value(g, "b").layout.strides = {1}; });
  breaks("G6", [](Graph& g) { value(g, "a").dtype = DType::F64; });
  breaks("G6", [](Graph& g) { value(g, "a").device = {DeviceType::Cuda, 1}; });
  breaks("G6", [](Graph& g) { producer(g, "b").as<Reduce>()->dims = {2}; });
  breaks("G6", [](Graph& g) { producer(g, "b").as<Reduce>()->dims = {1, 0}; });
  breaks("G6", [](Graph& g) { producer(g, "e").as<Permute>()->dims = {0, 0}; });
  breaks("G6", [](Graph& g) { producer(g, "b").as<Reduce>()->reduction = Reduction::Welford; });
  breaks("G6", [](Graph& g) { producer(g, "a").operands.push_back(Scalar::from_real(DType::F32, 1)); });
  breaks("G7", [](Graph& g) { producer(g, "c").as<Extern>()->callee.clear(); });
  breaks("G7", [](Graph& g) { producer(g, "c").as<Extern>()->args[0] = Arg(OperandRef{9}); });
  breaks("G7", [](Graph& g) { producer(g, "c").as<Extern>()->args[1] = Arg(ArgList{Arg(OperandRef{9})}); });
  breaks("G7", [](Graph& g) { producer(g, "c").as<Extern>()->alias_of = {0}; });
  breaks("G7", [](Graph& g) { producer(g, "c").as<Extern>()->alias_of = {1, -1}; });
  breaks("G7", [](Graph& g) { producer(g, "c").as<Extern>()->mutated_operands = {1}; });
  breaks("G7", [](Graph& g) { producer(g, "c").as<Extern>()->mutated_operands = {0, 0}; });
  breaks("G7", [](Graph& g) { producer(g, "c").operands[1] = Scalar::from_real(DType::F32, 1); });
  breaks("G8", [](Graph& g) { g.mutations[0].input = 2; });
  breaks("G8", [](Graph& g) { g.mutations[0].value = find(g, "d"); });
  breaks("G9", [](Graph& g) { g.outputs.push_back({.kind = Output::Kind::Symbol, .symbol = sym::Expr::symbol("q")}); });
  breaks("G9", [](Graph& g) { producer(g, "c").operands[1] = sym::Expr::symbol("q"); });
  breaks("G9", [](Graph& g) { value(g, "a").layout.strides[0] = sym::Expr::symbol("q"); });
  breaks("G13", [](Graph& g) { g.inputs.push_back({.kind = Input::Kind::Opaque, .donated = true}); });
}

TEST_CASE("reports name the model's line, and verify_or_throw shows the text", "[ir][graph]") {
  check_contains(report_after([](Graph& g) { value(g, "a").dtype = DType::F64; }), "%a (model.py:7)");
  Graph g = sample();
  verify_or_throw(g, "nothing");
  value(g, "b").sizes = {7};
  value(g, "b").layout.strides = {1};
  try {
    verify_or_throw(g, "fold");
    FAIL("accepted");
  } catch (const InternalError& error) {
    check_contains(error.what(), "after fold");
    check_contains(error.what(), "graph @f");
  }
  g.outputs[0].value = ValueId();
  CHECK_THROWS_AS(verify_or_throw(g, "fold"), InternalError);
}

TEST_CASE("the builder infers types, expands operands and rejects what does not fit", "[ir][graph]") {
  Graph g;
  Builder b(g);
  sym::Expr s = sym::Expr::symbol("s0");
  b.symbol_input("s0", {1, 64});
  ValueId x = b.input("x", DType::BF16, {}, {s, 4}, {4, 1});
  ValueId row = b.input("row", DType::BF16, {}, {4}, {1});
  ValueId scale = b.input("scale", DType::F32, {}, {}, {});
  ValueId ints = b.input("ints", DType::I64, {}, {s}, {1});

  ValueId sum = b.elementwise(ScalarOp::Add, {x, row});
  CHECK(g.values[sum].dtype == DType::BF16);
  CHECK(g.values[sum].sizes == std::vector<sym::Expr>{s, 4});
  ValueId scaled = b.elementwise(ScalarOp::Mul, {sum, scale});
  CHECK(g.values[scaled].dtype == DType::BF16);
  // An immediate has the compute type, whatever it came in.
  ValueId third = b.elementwise(ScalarOp::Mul, {scaled, Scalar::from_real(DType::F64, 0.1)});
  const auto& immediate = std::get<Scalar>(g.nodes[g.values[third].producer].operands[1]);
  CHECK(immediate.dtype() == DType::F32);
  CHECK(b.cast(x, DType::BF16) == x);
  CHECK(g.values[b.reduce(Reduction::Max, third, {-1}, true)[0]].sizes == std::vector<sym::Expr>{s, 1});
  CHECK(g.values[b.cat({x, x}, -1)].sizes == std::vector<sym::Expr>{s, 8});
  b.output(third);
  CHECK(verify(g).empty());

  CHECK_THROWS_AS(b.elementwise(ScalarOp::Add, {x, ints}), UserError);
  CHECK_THROWS_AS(b.elementwise(ScalarOp::Add, {ints, Scalar::from_real(DType::F32, 0.5)}), UserError);
  CHECK_THROWS_AS(b.elementwise(ScalarOp::Exp, {ints}), UserError);
  CHECK_THROWS_AS(b.reduce(Reduction::Sum, x, {0}, false), UserError);  // bf16 is no compute type
  CHECK_THROWS_AS(b.reduce(Reduction::Max, x, {2}, false), UserError);
  CHECK_THROWS_AS(b.slice(x, 1, 0, 5, 1), UserError);
  CHECK_THROWS_AS(b.reshape(x, {s, 5}), UserError);
  CHECK_THROWS_AS(b.expand(x, {s, 8}), UserError);
  CHECK_THROWS_AS(b.gather(x, {row}, {.source = {-1, 1}, .index_dims = {0}}, {4, 4}), UserError);
}

TEST_CASE("fresh names avoid those that are taken", "[ir][graph]") {
  Graph g;
  Builder b(g);
  ValueId x = b.input("0", DType::F32, {}, {4}, {1});
  CHECK(g.values[b.elementwise(ScalarOp::Exp, {x})].name == "1");
  Builder other(g);
  CHECK(g.values[other.elementwise(ScalarOp::Exp, {x})].name == "2");
  CHECK(g.values[b.elementwise(ScalarOp::Exp, {x})].name == "3");
}
