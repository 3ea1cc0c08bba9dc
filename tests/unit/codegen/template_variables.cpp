// Templates with variables and blocks: each variable takes a value, each value is used, and errors name the file and the variable.
#include "codegen/render_template.h"
#include "support/error.h"
#include "unit/catch.h"

using namespace cxxinductor;
using codegen::spell_plain;
using kernels::Values;
using kernels::when;

namespace {

std::string filled(std::string_view text, const Values& values) { return codegen::render_template(text, values, spell_plain, "file.cuh"); }

}  // namespace

TEST_CASE("variables take their values") {
  CHECK(filled("int x = /*{{value*/ 3 /*}}*/;", {{"value", 4}}) == "int x = 4;");
  CHECK(filled("/*{{n*/ 1 /*}}*/ + /*{{n*/ 2 /*}}*/", {{"n", "s0"}}) == "s0 + s0");
  CHECK(filled("f</*{{b*/ false /*}}*/>();", {{"b", true}}) == "f<true>();");
  CHECK(filled("{\n  /*{{body*/ old(); /*}}*/\n}", {{"body", "a();\nb();\n"}}) == "{\n  a();\n  b();\n}");
  CHECK(filled("a();\n/*{{rest*/ b(); /*}}*/\nc();", {{"rest", ""}}) == "a();\nc();");
}

TEST_CASE("blocks are repeated for each set of values") {
  const std::string_view lines = "/*{{for sums*/\n/*{{type*/ float /*}}*/ /*{{r*/ r0 /*}}*/ = /*{{start*/ 0 /*}}*/;\n/*}}*/\nend();";
  const std::vector<Values> sums{{{"type", "int"}, {"r", "r1"}}, {{"type", "double"}, {"r", "r2"}}};
  CHECK(filled(lines, {{"sums", sums}, {"start", 7}}) == "int r1 = 7;\ndouble r2 = 7;\nend();");
  CHECK(filled(lines, {{"sums", std::vector<Values>()}, {"start", 7}}) == "end();");
  CHECK(filled("/*{{for sums*/ f(/*{{r*/ r0 /*}}*/); /*}}*/", {{"sums", std::vector<Values>{{{"r", "a"}}, {{"r", "b"}}}}}) == "f(a);\nf(b);");
  CHECK(filled("f(x/*{{for sums*/, /*{{r*/ r0 /*}}*//*}}*/);", {{"sums", std::vector<Values>{{{"r", "a"}}, {{"r", "b"}}}}}) == "f(x, a, b);");
}

TEST_CASE("a block of one set is an optional part, and blocks lie in blocks") {
  const std::string_view text = "/*{{for loop*/\nfor (;;) {\n  /*{{for guard*/if (x) /*}}*/{\n    /*{{body*/ /*}}*/\n  }\n}\n/*}}*/";
  const auto loop = [](bool guarded, const char* body) { return std::vector<Values>{{{"guard", when(guarded)}, {"body", body}}}; };
  CHECK(filled(text, {{"loop", loop(true, "a();")}}) == "for (;;) {\n  if (x) {\n    a();\n  }\n}");
  CHECK(filled(text, {{"loop", loop(false, "a();\nb();")}}) == "for (;;) {\n  {\n    a();\n    b();\n  }\n}");
  // A value inside hides one around it.
  CHECK(filled("/*{{n*/ 0 /*}}*/ /*{{for more*/+ /*{{n*/ 0 /*}}*//*}}*/", {{"n", 1}, {"more", std::vector<Values>{{{"n", 2}}}}}) == "1 + 2");
}

TEST_CASE("open brackets indent lines; comments of a template and blank lines are left out") {
  CHECK(filled("// of readers\nvoid f(\nint a) {\n#pragma unroll\nfor (;;) {\n\ng();  // not {\n}\n}", {}) ==
        "void f(\n    int a) {\n  #pragma unroll\n  for (;;) {\n    g();  // not {\n  }\n}");
  CHECK(filled("x = f([&] {\n return 1; }, 2);\n/* a comment */", {}) == "x = f([&] {\n  return 1; }, 2);\n/* a comment */");
}

TEST_CASE("a variable without a value is an error") {
  CHECK_THROWS_WITH(filled("/*{{a*/ 1 /*}}*/ /*{{b*/ 2 /*}}*/", {{"a", ""}}), mentions("file.cuh") && mentions("'b'"));
  CHECK_THROWS_AS(codegen::render_template_file("cuda/matmul_kernel.cuh", {}, spell_plain), InternalError);
  CHECK_THROWS_WITH(filled("/*{{for a*//*{{b*/ 1 /*}}*//*}}*/", {{"a", when(true)}}), mentions("'b'"));
}

#ifndef NDEBUG
TEST_CASE("a value without a variable is an error in builds with assertions") {
  CHECK_THROWS_WITH(filled("/*{{a*/ 1 /*}}*/", {{"a", ""}, {"c", ""}}), mentions("file.cuh") && mentions("'c'"));
  // Of one set in a list, too, but not of a part that is left out.
  const std::string_view block = "/*{{for a*//*{{b*/ 1 /*}}*//*}}*/";
  CHECK_THROWS_WITH(filled(block, {{"a", std::vector<Values>{{{"b", 1}}, {{"b", 1}, {"c", 2}}}}}), mentions("'c'"));
  CHECK(filled(block, {{"a", when(false)}}) == "");
  // A value may have its place in any of the blocks of one name.
  CHECK(filled("/*{{for a*/1/*}}*//*{{for a*//*{{b*/ 1 /*}}*//*}}*/", {{"a", std::vector<Values>{{{"b", 2}}}}}) == "12");
}
#endif

TEST_CASE("lists are for blocks, other values for variables") {
  CHECK_THROWS_WITH(filled("/*{{a*/ 1 /*}}*/", {{"a", when(true)}}), mentions("'a' is a variable"));
  CHECK_THROWS_WITH(filled("/*{{for a*/ 1 /*}}*/", {{"a", 1}}), mentions("'a' is a block"));
  CHECK_THROWS_AS(filled("/*{{a*/ 1 /*}}*/", {{"a", kernels::BlockNumber()}}), InternalError);
}

TEST_CASE("variables that do not end, or hold others, are errors") {
  CHECK_THROWS_WITH(filled("/*{{a*/ 1", {{"a", ""}}), mentions("does not end"));
  CHECK_THROWS_WITH(filled("/*{{for a*/ 1", {{"a", when(true)}}), mentions("the block 'a' does not end"));
  CHECK_THROWS_WITH(filled("1 /*}}*/", {}), mentions("did not begin"));
  CHECK_THROWS_WITH(filled("/*{{a*/ /*{{b*/ 1 /*}}*/ /*}}*/", {{"a", ""}, {"b", ""}}), mentions("holds another"));
}
