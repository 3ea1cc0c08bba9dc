#include "support/text_cursor.h"

#include <cmath>
#include <functional>
#include <limits>

#include "support/error.h"
#include "unit/catch.h"

using namespace cxxinductor;

TEST_CASE("tokens, blanks and comments") {
  TextCursor c("  add(%x.1, -12)  ; the rest is a comment\n -> aten::mm.out");
  REQUIRE(c.identifier("an op") == "add");
  REQUIRE(c.accept("("));
  REQUIRE(c.sigil_name('%', "a value") == "x.1");
  REQUIRE_FALSE(c.accept(")"));
  c.expect(",");
  REQUIRE(c.looking_at_number());
  REQUIRE(c.integer("a number") == -12);
  c.expect(")");
  c.expect("->");
  REQUIRE(c.line() == 2);
  REQUIRE(c.identifier("a callee") == "aten::mm.out");
  REQUIRE(c.at_end());
}

TEST_CASE("a keyword ends where its word ends") {
  TextCursor c("returned return");
  REQUIRE_FALSE(c.accept("return"));
  REQUIRE(c.identifier("a word") == "returned");
  REQUIRE(c.accept("return"));
}

TEST_CASE("an identifier does not swallow a type after it") {
  TextCursor c("x: f32");
  REQUIRE(c.identifier("a name") == "x");
  c.expect(":");
  REQUIRE(c.identifier("a dtype") == "f32");
}

TEST_CASE("reals read back bit for bit") {
  for (const double value : {0.0, -0.0, 1.5, -2.25e-7, 0.1, 1e308, 5e-324, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    const std::string text = fmt::format("{}", value);
    TextCursor c(text);
    const double read = c.real("a number");
    REQUIRE(std::signbit(read) == std::signbit(value));
    REQUIRE(read == value);
    REQUIRE(c.at_end());
  }
  TextCursor hexadecimal("0x1.8p1 -nan 1e");
  REQUIRE(hexadecimal.real("a number") == 3.0);
  REQUIRE(std::isnan(hexadecimal.real("a number")));
  REQUIRE_THROWS_AS(hexadecimal.real("a number"), UserError);
  for (const char* bad : {"", "-", "--1", "0x", "e5", ".", "1.5.2", "abc"}) {
    TextCursor c(bad);
    REQUIRE_THROWS_AS(c.real("a number"), UserError);
  }
}

TEST_CASE("quoted text") {
  TextCursor c(R"("a \"b\" \\ c\nd" "open)");
  REQUIRE(c.quoted("text") == "a \"b\" \\ c\nd");
  REQUIRE_THROWS_AS(c.quoted("text"), UserError);
  TextCursor ends_in_escape("\"a\\");
  REQUIRE_THROWS_AS(ends_in_escape.quoted("text"), UserError);
}

TEST_CASE("balanced text stops at depth 0 only") {
  TextCursor c("floordiv(a, b) + [1, 2], next");
  REQUIRE(c.balanced_until(",") == "floordiv(a, b) + [1, 2]");
  TextCursor unopened("a + b)");
  REQUIRE(unopened.balanced_until(",") == "a + b");
}

TEST_CASE("errors name line, column, what was expected and what was found") {
  TextCursor c("one\n  two");
  REQUIRE(c.identifier("a word") == "one");
  REQUIRE_THROWS_WITH(c.expect("="), "line 2, column 3: expected '=', found 'two'");
  TextCursor empty("");
  REQUIRE_THROWS_WITH(empty.identifier("a word"), "line 1, column 1: expected a word, found the end of the text");
  TextCursor large("99999999999999999999");
  REQUIRE_THROWS_AS(large.integer("a size"), UserError);
}

TEST_CASE("nesting is limited") {
  TextCursor c("x");
  const std::function<void(int)> descend = [&](int depth) {
    TextCursor::Nested nested(c);
    if (depth > 0) descend(depth - 1);
  };
  REQUIRE_NOTHROW(descend(199));
  REQUIRE_THROWS_AS(descend(200), UserError);
  REQUIRE_NOTHROW(descend(199));  // and unwinds
}
