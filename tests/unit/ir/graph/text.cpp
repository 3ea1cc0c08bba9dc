// Round trips and rejected texts of the graph IR.
#include "ir/graph/text.h"

#include "support/error.h"
#include "unit/catch.h"
#include "unit/ir/expect_text.h"
#include "unit/ir/text_fuzz.h"

using namespace cxxinductor;
using graph::parse;
using graph::print;

namespace {

std::string failure(std::string_view text) {
  try {
    parse(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("every kind of graph node survives print and parse", "[ir][graph]") {
  const char* text =
      R"(graph @all on cuda:0 (%x: bf16[s0, 1000] strides [1, s0], %b: bf16[1000] from "self.bias", %i: i64[7], %c: bool[s0, 1000], %k: f32[] flexible on cpu, sym s0, sym u from "pos", opaque from "gen") where 1 <= s0 <= 65536, u <= 9, 8 | s0 {
  %0: bf16[s0, 1000] = expand(%b)
  %1 = add(%x, %0) from "model.py":12 "h.0" "aten.add.Tensor"
  %2 = cast<f32>(%1)
  %3 = reduce<max, dims=[1], keepdim>(%2)
  %4 = mul(%2, 0.5)
  %5 = mul(%4, expr(s0 + 1))
  %6 = add(%5, %k)
  %mean, %m2 = reduce<welford, dims=[1]>(%6)
  %7 = reduce<sum>(%6)
  %8: f32[s0] = full(-inf)
  %9: i64[s0] = full(expr(2*s0))
  %10: i64[10] on cpu = iota<start=s0, step=-1>()
  %11 = permute<dims=[1, 0]>(%6)
  %12: f32[1000*s0] = reshape(%6)
  %13: f32[s0, 10] = slice<dim=1, start=u, step=2>(%6)
  %14 = flip<dims=[0, 1]>(%13)
  %15: f32[s0 + 2, 9] = pad<low=[2, -1], fill=f32(nan)>(%14)
  %16 strides [1, 2*s0] fixed = cat<dim=0>(%14, %13)
  %17: bf16[s0, 7] = gather<source=[0, -1], index_dims=[1], no_wrap, no_check>(%x, %i)
  %18 = where(%c, %x, 0.0)
  %19 = where(%c, f64(1.5), f64(nan))
  %v: bf16[s0, 1000] strides [1, s0], %j: i64[s0, 1000] = extern "aten::sort.stable"($0, stable = true, dim = -1) with (%x) alias [0, -1] from "a \"b\".py":3 "" "aten.sort.stable"
  extern "a.b" overload "c"([$1, none, 2.5, "x;\"y"], expr(s0), f16, device(cuda:0), layout(0), memory_format(1), handle(4), k = []) with (expr(s0), %x) mutates [1] ordered flexible_strides
  %y: f32[s0] flexible = extern "aten::mv"($0, $1) with (%2, %8) planned_out
  version %x = %0
  final %x = %18
  return %y, %mean, expr(s0 + 3), none
}
)";
  CHECK(print(parse(text)) == text);
}

TEST_CASE("an empty graph and a graph without results round-trip", "[ir][graph]") {
  for (const char* text : {"graph @f() {\n  return\n}\n", "graph @f(%x: f32[]) {\n  return %x, %x\n}\n"}) CHECK(print(parse(text)) == text);
}

TEST_CASE("views take the strides that eager gives them", "[ir][graph]") {
  graph::Graph g = parse(R"(graph @f(%x: f32[4, 6, 8], %t: f32[4, 6] strides [1, 4], %b: f32[6, 1]) {
    %permuted = permute<dims=[2, 0, 1]>(%x)
    %split: f32[4, 3, 2, 8] = reshape(%x)
    %merged: f32[24, 8] = reshape(%x)
    %kept: f32[8, 24] = reshape(%permuted)
    %copied: f32[24] = reshape(%t)
    %halves: f32[2, 2, 6] = reshape(%t)
    %repeated: f32[5, 6, 3] = expand(%b)
    %sliced: f32[4, 3, 8] = slice<dim=1, start=1, step=2>(%x)
    %ones: f32[4, 1, 6, 1] = reshape(%t)
    return %x
  })");
  auto strides = [&](std::string_view name) {
    for (const graph::Value& value : g.values)
      if (value.name == name) return value.layout.strides;
    return std::vector<sym::Expr>{};
  };
  using Strides = std::vector<sym::Expr>;
  CHECK(strides("permuted") == Strides{1, 48, 8});
  CHECK(strides("split") == Strides{48, 16, 8, 1});
  CHECK(strides("merged") == Strides{8, 1});
  CHECK(strides("kept") == Strides{1, 8});
  CHECK(strides("copied") == Strides{1});
  CHECK(strides("halves") == Strides{2, 1, 4});
  CHECK(strides("repeated") == Strides{0, 1, 0});
  CHECK(strides("sliced") == Strides{48, 16, 1});
  CHECK(strides("ones")[0] == sym::Expr(1));
  CHECK(strides("ones")[2] == sym::Expr(4));
}

TEST_CASE("hand-written text may broadcast and may state inferred types", "[ir][graph]") {
  graph::Graph g = parse("graph @f(%x: f32[s0, 4], %b: f32[4]) { %y: f32[s0, 4] = add(%x, %b) return %y }");
  CHECK(g.nodes.size() == 2);
  CHECK(print(parse(print(g))) == print(g));
}

TEST_CASE("bad graph text names the line and what was expected", "[ir][graph]") {
  auto body = [](std::string lines) { return "graph @f(%x: f32[4], %i: i64[3], sym s) {\n" + lines + "\nreturn %x }"; };
  for (auto [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "expected 'graph'"},
           {"graph f", "the graph's name"},
           {"graph @f(%x) { return }", "the input's type"},
           {"graph @f(%x: f99[4]) { return }", "a dtype"},
           {"graph @f(%x: f32[4] strides [1, 2]) { return }", "1 strides"},
           {"graph @f(%x: f32[4], %x: f32[4]) { return }", "a new name"},
           {"graph @f(%x: f32[4 +]) { return }", "an expression"},
           {"graph @f(%x: f32[9223372036854775807*9223372036854775807]) { return }", "an expression"},
           {"graph @f(%x: f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]) { return }", "at most 16 items"},
           {"graph @f(%x: f32[4]) where 5 <= s <= 4 { return }", "not empty"},
           {"graph @f(%x: f32[4]) where 0 | s { return }", "positive divisor"},
           {"graph @f(%x: f32[4]) { return %y }", "there is no %y"},
           {"graph @f(%x: f32[4]) { return %x } graph", "end of the text"},
           {body("%0 = frobnicate(%x)"), "line 2"},
           {body("%0 = frobnicate(%x)"), "a node kind or scalar op"},
           {body("%0 = add(%x)"), "expects 2 operands"},
           {body("%0 = add(%x, %i)"), "line 2"},
           {body("%0 = reshape(%x)"), "result type"},
           {body("%0: f32[5] = reshape(%x)"), "reshape expects 4 elements"},
           {body("%0: f32[5] = exp(%x)"), "gives f32[4]"},
           {body("%0 = permute<dims=[1]>(%x)"), "dimension"},
           {body("%0 = permute<dims=[99999999999]>(%x)"), "an integer between"},
           {body("%0 = reduce<sum, dims=[0, 0]>(%x)"), "sorted, distinct"},
           {body("%0 = reduce<mode>(%x)"), "a reduction"},
           {body("%0, %1 = exp(%x)"), "2 results"},
           {body("%0 = exp(0.5)"), "f32(0.5)"},
           {body("%0: f32[4] = extern \"aten::mm\"($3) with (%x)"), "G7"},
           {body("%0 = extern \"aten::mm\"($0) with (%x)"), "a type for extern result"},
           {body("%0: f32[4] = extern \"aten::mm\"(" + std::string(500, '[')), "deep"},
           {body("final %0 = %x"), "there is no %0"},
           {body("%0 = exp(%x) final %0 = %x"), "an input"},
           {body("%0 = exp(%x) from \"a"), "closing"},
       }) {
    INFO(text);
    check_contains(failure(text), message);
  }
}

TEST_CASE("mutated graph texts never crash the parser", "[ir][graph][fuzz]") {
  fuzz_text(print(parse(
                R"(graph @f on cuda:0 (%x: bf16[s0, 8], %i: i64[3], %c: bool[s0, 8], sym s0) where 1 <= s0 <= 64, 8 | s0 {
    %0 = where(%c, %x, 0.5) from "m.py":3 "h" "aten.where"
    %1 = cast<f32>(%0)
    %m, %v = reduce<welford, dims=[1], keepdim>(%1)
    %2: bf16[s0, 3] = gather<source=[0, -1], index_dims=[1]>(%x, %i)
    %3: bf16[s0 + 2, 3] = pad<low=[1, 0], fill=bf16(0.0)>(%2)
    %4: i64[4], %5: f32[s0] = extern "aten::sort.stable"($0, [1, 2.5, "s"], dim = expr(s0)) with (%3, expr(s0)) alias [0, -1] ordered
    final %x = %0
    return %m, expr(floordiv(s0, 2)), none
  })")),
            [](std::string_view text) { parse(text); });
}
