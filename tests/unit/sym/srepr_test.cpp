#include "support/error.h"
#include "sym/expr.h"
#include "unit/catch.h"

using namespace cxxinductor;
using namespace cxxinductor::sym;

namespace {
const std::string s77 = "Symbol('s77', positive=True, integer=True)", u0 = "Symbol('u0', integer=True)";
std::string read(const std::string& text) { return to_string(parse_srepr(text)); }
}  // namespace

TEST_CASE("what torch writes") {
  REQUIRE(read(s77) == "s77");
  REQUIRE(read("Integer(-4)") == "-4");
  REQUIRE(read("Add(Mul(Integer(2), " + s77 + "), Integer(-1))") == "2*s77 - 1");
  REQUIRE(read("Pow(" + s77 + ", Integer(2))") == "s77*s77");
  REQUIRE(read("FloorDiv(" + s77 + ", Integer(2))") == "floordiv(s77, 2)");
  REQUIRE(read("CleanDiv(" + s77 + ", Integer(2))") == "floordiv(s77, 2)");
  REQUIRE(read("ModularIndexing(" + s77 + ", Integer(4), Integer(8))") == "mod(floordiv(s77, 4), 8)");
  REQUIRE(read("PythonMod(" + u0 + ", Integer(8))") == "mod(u0, 8)");
  REQUIRE(read("Max(Integer(1), " + u0 + ", " + s77 + ")") == "max(1, s77, u0)");
  REQUIRE(read("CeilToInt(IntTrueDiv(" + s77 + ", Integer(2)))") == "-floordiv(-s77, 2)");
  REQUIRE(read("FloorToInt(IntTrueDiv(" + s77 + ", Integer(2)))") == "floordiv(s77, 2)");
  REQUIRE(read("TruncToInt(IntTrueDiv(" + s77 + ", Integer(2)))") == "floordiv(s77, 2)");
  REQUIRE(read("Identity(" + s77 + ")") == "s77");
  REQUIRE(read("floor(Mul(Rational(1, 2), " + s77 + "))") == "floordiv(s77, 2)");
  REQUIRE(read("floor(Add(Mul(Rational(1, 2), " + s77 + "), Rational(1, 3)))") == "floordiv(s77, 2)");
  REQUIRE(read("Mul(Integer(2), Rational(1, 2), " + s77 + ")") == "s77");
  REQUIRE(read("Mul(" + s77 + ", Add(" + s77 + ", Integer(1)), evaluate=False)") == "s77 + s77*s77");
}

TEST_CASE("what is refused names the function") {
  REQUIRE_THROWS_WITH(read("Where(" + s77 + ", " + s77 + ")"), mentions("Where"));
  REQUIRE_THROWS_AS(read("Where(" + s77 + ")"), Unsupported);
  REQUIRE_THROWS_AS(read("Rational(1, 2)"), Unsupported);
  REQUIRE_THROWS_AS(read("TruncToInt(IntTrueDiv(" + u0 + ", Integer(2)))"), Unsupported);
  REQUIRE_THROWS_AS(read("Pow(" + s77 + ", " + u0 + ")"), Unsupported);
  REQUIRE_THROWS_AS(read("Pow(" + s77 + ", Integer(1000000))"), Unsupported);
  REQUIRE_THROWS_AS(read("Float('0.5', precision=53)"), Unsupported);
}

TEST_CASE("untrusted text gives an error") {
  std::string deep;
  for (int i = 0; i < 10000; ++i) deep += "Add(";
  for (const std::string& bad :
       {std::string(), std::string("Add("), std::string("Symbol('"), std::string("Symbol(s0)"), std::string("Integer(x)"), std::string("Integer(1) Integer(2)"),
        std::string("Add()"), std::string("FloorDiv(Integer(1))"), std::string("FloorDiv(Integer(1), Integer(0))"), std::string("Symbol('a', positive=True"),
        std::string("Rational(1, 0)"), deep, std::string("Mod(Integer(99999999999999999999), Integer(3))")})
    REQUIRE_THROWS_AS(read(bad), UserError);
  // What grows faster than the text.
  std::string power = s77, absolute = s77;
  for (int i = 0; i < 6; ++i) power = "Pow(" + power + ", Integer(16))";
  for (int i = 0; i < 100; ++i) absolute = "Abs(" + absolute + ")";
  REQUIRE_THROWS_WITH(read(power), mentions("factors"));
  REQUIRE_THROWS_WITH(read(absolute), mentions("terms and factors"));
  // Every prefix of a good text.
  const std::string good = "Add(Mul(Integer(2), " + s77 + "), FloorDiv(" + u0 + ", Integer(-3)))";
  REQUIRE_NOTHROW(read(good));
  for (size_t length = 0; length < good.size(); ++length) REQUIRE_THROWS_AS(read(good.substr(0, length)), Error);
}
