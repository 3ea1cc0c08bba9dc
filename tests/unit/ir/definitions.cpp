// Symbols that calls define: the text of the three IRs, and what their verifiers refuse.
#include "ir/graph/text.h"
#include "ir/loops/text.h"
#include "ir/plan/text.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/ir/expect_text.h"

using namespace cxxinductor;

namespace {

template <class Parse>
std::string report_of(Parse parse, const std::string& text) {
  try {
    parse(text);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}
std::string graph_report(const std::string& body, const std::string& inputs = "") {
  return report_of(graph::parse, "graph @f(%x: f32[8], %m: bool[8], %n: i64[]" + inputs + ") {\n" + body + "}\n");
}
std::string loops_report(const std::string& body) {
  return report_of(loops::parse, "program @f(@x: f32[8], @n: i64[]) where 0 <= u0 {\n  output @y: f32[u0]\n" + body + "}\n");
}
std::string plan_report(const std::string& body) {
  return report_of(plan::parse, "plan @f for cpu (@x: f32[8] bytes (32), @n: i64[] bytes (8), @r: f32[] bytes (4)) {\n" + body + "}\n");
}

const std::string chosen = "%a: f32[u0] = extern \"aten::masked_select\"($0, $1) with (%x, %m) defines [u0 = result 0 dim 0]\n";
const std::string item = "extern \"aten::_local_scalar_dense\"($0) with (%n) defines [u1 = value] flexible_strides\n";

}  // namespace

TEST_CASE("a graph's calls define symbols for what follows", "[ir][graph]") {
  CHECK(graph_report(chosen + "%b = exp(%a)\nreturn %b, expr(2*u0)\n") == "");
  CHECK(graph_report(item + "%b: f32[u1] = full(1.0)\nreturn %b\n") == "");
  const std::string text = graph::print(graph::parse("graph @f(%x: f32[8], %m: bool[8], %n: i64[]) where 0 <= u0 <= 8 {\n" + chosen + item + "return %a\n}\n"));
  CHECK(graph::print(graph::parse(text)) == text);
  check_contains(text, "defines [u0 = result 0 dim 0]");
  check_contains(text, "defines [u1 = value]");

  check_contains(graph_report("%b: f32[u0] = full(1.0)\n" + chosen + "return %b\n"), "unknown symbol u0");
  check_contains(graph_report("%a: f32[u0] = extern \"aten::f\"($0) with (%x)\nreturn %a\n"), "unknown symbol u0");
  check_contains(graph_report(item + item + "return\n"), "G14:");
  check_contains(graph_report(chosen + "return %a\n", ", sym u0"), "G14:");
  check_contains(graph_report(chosen + "return %a\n", ", %z: f32[u0]"), "G14:");
  check_contains(graph_report("%a: f32[u0] = extern \"aten::f\"($0) with (%x) defines [u0 = result 0 dim 2]\nreturn %a\n"), "G14:");
  check_contains(graph_report("%a: f32[2*u0] = extern \"aten::f\"($0) with (%x) defines [u0 = result 0 dim 0]\nreturn %a\n"), "G14:");
  check_contains(graph_report("extern \"aten::_local_scalar_dense\"($0) with (%x) defines [u1 = value]\nreturn\n"), "G14:");
}

TEST_CASE("a program's calls define symbols for later steps", "[ir][loops]") {
  const std::string call = "  @y = extern \"aten::f\"($0) with (@x) defines [u0 = result 0 dim 0]\n";
  const std::string copy = "  region @r over i < u0 {\n    %0 = load @x[i]\n    store @y[i] = %0\n  }\n";
  const std::string read = "  extern \"aten::_local_scalar_dense\"($0) with (@n) defines [u0 = value]\n";
  CHECK(loops_report(call + "  return @y\n") == "");
  CHECK(loops_report(read + copy + "  return @y\n") == "");
  check_contains(loops_report(copy + read + "  return @y\n"), "L14:");
  check_contains(loops_report(read + read + copy + "  return @y\n"), "L14:");
  check_contains(loops_report("  @y = extern \"aten::f\"($0) with (@x) defines [u0 = result 1 dim 0]\n  return @y\n"), "L14:");
}

TEST_CASE("a plan's steps define symbols for later steps", "[ir][plan]") {
  const std::string own = "  buffer @y: f32[u0] bytes (4*u0) standalone\n", theirs = "  buffer @y: f32[u0] bytes (4*u0) extern_owned\n";
  const std::string read = "  read u0 = @n\n", fill = "  allocate @y\n  @y = extern \"aten::fill\"($0) with (@x) planned_out\n";
  const std::string call = "  @y = extern \"aten::f\"($0) with (@x) defines [u0 = result 0 dim 0]\n";
  CHECK(plan_report(theirs + call + "  assert (u0) \"some\"\n  return @y, expr(u0)\n") == "");
  CHECK(plan_report(own + read + fill + "  return @y\n") == "");
  const std::string text = plan::print(plan::parse("plan @f for cpu (@x: f32[8] bytes (32), @n: i64[] bytes (8)) {\n" + own + read +
                                                   "  assert (u0) \"two \\\"words\\\"\"\n" + fill + "  return @y\n}\n"));
  CHECK(plan::print(plan::parse(text)) == text);

  check_contains(plan_report(own + fill + read + "  return @y\n"), "P20:");
  check_contains(plan_report(own + "  assert (u0) \"\"\n" + read + fill + "  return @y\n"), "P20:");
  check_contains(plan_report(own + read + read + fill + "  return @y\n"), "P12:");
  check_contains(plan_report(own + "  read u0 = @r\n" + fill + "  return @y\n"), "P20:");
  check_contains(plan_report(theirs + "  @y = extern \"aten::f\"($0) with (@x) defines [u0 = result 0 dim 7]\n  return @y\n"), "P20:");
  check_contains(plan_report("  arena (64*u0)\n  buffer @y: f32[4] bytes (16) arena at (0)\n  @y = extern "
                             "\"aten::g\"($0) with (@x) planned_out\n" +
                             read + "  return\n"),
                 "P20:");
}
