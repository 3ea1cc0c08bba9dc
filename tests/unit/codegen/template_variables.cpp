// Templates with named holes: each is filled, each filling is used, and errors name the file and the hole.
#include "codegen/templates.h"
#include "support/error.h"
#include "unit/catch.h"

using namespace cxxinductor;

namespace {

std::string filled(std::string_view text, const codegen::TemplateVariables& values) {
  return codegen::render_template(text, values, "file.cuh");
}

}  // namespace

TEST_CASE("variables take their values, at their indentation") {
  CHECK(filled("int x = /*{{value*/ 3 /*}}*/;", {{"value", "4"}}) == "int x = 4;");
  CHECK(filled("  /*{{body*/ old(); /*}}*/\n}", {{"body", "a();\nb();\n"}}) == "  a();\n  b();\n}");
  CHECK(filled("  /*{{body*/ /*}}*/", {{"body", "a();\n#pragma unroll\nb();"}}) == "  a();\n#pragma unroll\n  b();");
  CHECK(filled("/*{{n*/ 1 /*}}*/ + /*{{n*/ 2 /*}}*/", {{"n", "s0"}}) == "s0 + s0");
  CHECK(filled("/* a comment */", {}) == "/* a comment */");
}

TEST_CASE("a variable without a value, or a value without a variable, is an error") {
  CHECK_THROWS_WITH(filled("/*{{a*/ 1 /*}}*/ /*{{b*/ 2 /*}}*/", {{"a", ""}}), mentions("file.cuh") && mentions("'b'"));
  CHECK_THROWS_WITH(filled("/*{{a*/ 1 /*}}*/", {{"a", ""}, {"c", ""}}), mentions("file.cuh") && mentions("'c'"));
  CHECK_THROWS_AS(codegen::render_template_file("cuda/matmul_kernel.cuh", {}), InternalError);
}

TEST_CASE("holes that do not end, or lie inside one another, are errors") {
  CHECK_THROWS_WITH(filled("/*{{a*/ 1", {{"a", ""}}), mentions("does not end"));
  CHECK_THROWS_WITH(filled("1 /*}}*/", {}), mentions("did not begin"));
  CHECK_THROWS_WITH(filled("/*{{a*/ /*{{b*/ 1 /*}}*/ /*}}*/", {{"a", ""}, {"b", ""}}), mentions("holds another"));
}
