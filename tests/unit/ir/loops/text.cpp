// Round trips and rejected texts of the loops IR.
#include "ir/loops/text.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/ir/expect_text.h"
#include "unit/ir/text_fuzz.h"

using namespace cxxinductor;
using loops::parse;
using loops::print;

namespace {

const char* const every_kind =
    R"(program @all on cuda:0 (@x: bf16[s0, 1000], sym s0, @i: i64[7], @c: bool[s0] flexible on cpu, opaque from "gen") where 1 <= s0 <= 65536 {
  output @y: f32[s0, 7]
  output @m: f32[s0]
  temporary @t: bf16[s0, 1000] strides [1, s0] fixed
  output @r: i64[s0] fixed
  region @n0 over i < s0, j < 1000 {
    %0 = load @x[i, j] from "model.py":12 "h" "aten.add.Tensor"  ; (i j)
    %1 = cast<f32>(%0)  ; (i j)
    %2 = constant f32(0.5)  ; ()
    %3 = mul(%1, %2)  ; (i j)
    %4 = reduce<max>(%3) over j  ; (i)
    %5 = sub(%3, %4)  ; (i j)
    %6 = reduce<welford>(%5) over j  ; (i)
    %7 = project<1>(%6)  ; (i)
    store @m[i] = %7  ; (i)
    %9 = cast<bf16>(%5)  ; (i j)
    store @t[i, j] = %9  ; (i j)
  }
  region @n1 over i < s0, k < 7 {
    %0 = load @i[k]  ; (k)
    check %0 < (s0 + 1000) "index_select: index out of range"  ; (k)
    %2 = index(i + floordiv(k, 2))  ; (i k)
    %3 = lt(%2, %0)  ; (i k)
    %4 = load @x[i, %0] if %3 else bf16(0.0)  ; (i k)
    %5 = cast<f32>(%4)  ; (i k)
    store @y[i, k] = %5 if %3  ; (i k)
  }
  @r = extern "aten::f.x"($0, $1, $2) with (@t, expr(s0), view @x: bf16[s0] strides [1000] offset (3)) mutates [0] ordered from "m.py":1 "" ""
  return @y, @m, @r, view @x: bf16[s0] strides [1000] offset (s0 + 3), expr(2*s0), none
}
)";

std::string failure(std::string_view text) {
  try {
    parse(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("every kind of loops statement survives print and parse", "[ir][loops]") { CHECK(print(parse(every_kind)) == std::string(every_kind)); }

TEST_CASE("labels in hand-written regions are free", "[ir][loops]") {
  loops::Program p = parse(R"(program @f(@x: i64[9]) {
    output @y: f32[4]
    region @n over i < 4 { %a = load @x[2*i] %b = index(%a + i) %c = cast<f32>(%b) store @y[i] = %c }
    return @y
  })");
  const auto& region = std::get<loops::Region>(p.steps[0]);
  const auto* index = region.body[loops::StmtId(1)].as<loops::Index>();
  REQUIRE(index);
  CHECK(index->value == loops::statement_symbol(loops::StmtId(0)) + region.symbol(loops::VarId(0)));
  CHECK(region.body[loops::StmtId(1)].vars == loops::VarSet::of(loops::VarId(0)));
  CHECK(print(p, region).starts_with("region @n over i < 4 {\n  %0 = load @x[2*i]"));
  CHECK(print(parse(print(p))) == print(p));
}

TEST_CASE("bad loops text names the line and what was expected", "[ir][loops]") {
  auto body = [](std::string lines) {
    return "program @f(@x: f32[4], @k: i64[4]) {\noutput @y: f32[4]\nregion @n over i < 4 {\n" + lines + "\n%v = load @x[i]\nstore @y[i] = %v }\nreturn @y }";
  };
  std::string many = "over ";
  for (int i = 0; i < 33; ++i) many += fmt::format("{}i{} < 2", i ? ", " : "", i);
  for (auto [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"graph @f", "expected 'program'"},
           {"program @f(@x: f32[4]) { return @z }", "there is no @z"},
           {"program @f(@x: f32[4]) { temporary @x: f32[4] return }", "a new buffer name"},
           {"program @f(@x: f32[4]) { return @x } x", "end of the text"},
           {"program @f() { region @n " + many + " { } return }", "at most 32 variables"},
           {body("%0 = fly(%0)"), "line 4"},
           {body("%0 = exp(%0)"), "there is no %0"},
           {body("%0 = load @q[i]"), "there is no @q"},
           {body("%0 = load @x[%9]"), "there is no statement %9"},
           {body("%0 = load @x[stmt.9]"), "written %name"},
           {body("%0 = load @x[i, i]"), "L5"},
           {body("%0 = load @x[j]"), "L7"},
           {body("%0 = load @x[i] %0 = load @x[i]"), "a new name"},
           {body("%0 = load @x[i] %1 = add(%0)"), "2 operands"},
           {body("%0 = load @x[i] %1 = add(%0, %0, %0)"), "2 operands"},
           {body("%0 = load @x[i] %1 = project<0>(%0)"), "a result of a reduction"},
           {body("%0 = load @x[i] %1 = reduce<sum>(%0) over q"), "a variable of the region"},
           {body("%0 = load @x[i] if %0 else f32(1)"), "there is no %0"},
           {body("%0 = constant 3"), "a dtype"},
           {body("%0 = constant c64(3)"), "immediates"},
       }) {
    INFO(text);
    check_contains(failure(text), message);
  }
}

TEST_CASE("mutated loops texts never crash the parser", "[ir][loops][fuzz]") {
  fuzz_text(every_kind, [](std::string_view text) { parse(text); });
}
