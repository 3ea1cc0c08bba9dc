#include "sym/expr.h"

#include <limits>
#include <string>
#include <thread>

#include "support/error.h"
#include "unit/catch.h"

using namespace cxxinductor;
using namespace cxxinductor::sym;

namespace {
const Expr a = Expr::symbol("a"), b = Expr::symbol("b"), c = Expr::symbol("c");
constexpr int64_t largest = std::numeric_limits<int64_t>::max(), smallest = std::numeric_limits<int64_t>::min();
}  // namespace

TEST_CASE("sums and products have one form") {
  REQUIRE(a + b == b + a);
  REQUIRE((a + b) + c == a + (b + c));
  REQUIRE(a - a == Expr(0));
  REQUIRE(a + a == 2 * a);
  REQUIRE(2 * (a + 3) == 2 * a + 6);
  REQUIRE((a + b) * (a - b) == a * a - b * b);
  REQUIRE(a * b * c == c * b * a);
  REQUIRE(a * 0 == Expr(0));
  REQUIRE(to_string(128 * a - b + 3) == "128*a - b + 3");
  REQUIRE(to_string(-a) == "-a");
  REQUIRE(to_string(-(a * b) - 1) == "-a*b - 1");
  REQUIRE(to_string(Expr(3) - a) == "-a + 3");
}

TEST_CASE("text does not depend on the order of construction") {
  const Expr z = Expr::symbol("zz_late"), y = Expr::symbol("yy_later");
  REQUIRE(to_string(z + a * y + floor_div(b, 2)) == to_string(floor_div(b, 2) + y * a + z));
  REQUIRE(to_string(y + z) == "yy_later + zz_late");
  REQUIRE(to_string(max(z, min(y, a))) == to_string(max(min(a, y), z)));
}

TEST_CASE("quotients") {
  REQUIRE(floor_div(a, 1) == a);
  REQUIRE(floor_div(0, a) == Expr(0));
  REQUIRE(floor_div(-7, 2) == Expr(-4));
  REQUIRE(floor_div(7, -2) == Expr(-4));
  REQUIRE(floor_div(4 * a + b, 4) == a + floor_div(b, 4));
  REQUIRE(floor_div(4 * a + 6, 4) == a + 1 + floor_div(2, 4));
  REQUIRE(floor_div(floor_div(a, 3), 5) == floor_div(a, 15));
  REQUIRE(floor_div(floor_div(a, 3) + 2, 5) == floor_div(a + 6, 15));
  REQUIRE(floor_div(6 * a, 4) == floor_div(3 * a, 2));
  REQUIRE(floor_div(2 * a + 1, 4) == floor_div(a, 2));
  REQUIRE(floor_div(a, -3) == floor_div(-a, 3));
  REQUIRE(floor_div(a * b, b) == a);
  REQUIRE(floor_div(a * b * 6 + c, 2 * b) == 3 * a + floor_div(c, 2 * b));
  REQUIRE(floor_div(a * b, b * c) == floor_div(a, c));
  REQUIRE(floor_div(a, a) == Expr(1));
  REQUIRE(ceil_div(a, 1) == a);
  REQUIRE(ceil_div(7, 2) == Expr(4));
  REQUIRE_THROWS_AS(floor_div(a, 0), UserError);
}

TEST_CASE("remainders") {
  REQUIRE(mod(a, 1) == Expr(0));
  REQUIRE(mod(-7, 4) == Expr(1));
  REQUIRE(mod(7, -4) == Expr(-1));
  REQUIRE(mod(6 * a, 3) == Expr(0));
  REQUIRE(mod(4 * a + b + 9, 4) == mod(b + 1, 4));
  REQUIRE(mod(mod(a, 12), 4) == mod(a, 4));
  REQUIRE(mod(mod(a, 12), 5) != mod(a, 5));
  REQUIRE(mod(6 * a + 1, 4) == 2 * mod(3 * a, 2) + 1);
  REQUIRE(mod(a * b + c, b) == mod(c, b));
  REQUIRE_THROWS_AS(mod(a, 0), UserError);
}

TEST_CASE("minimum and maximum") {
  REQUIRE(min(a, a) == a);
  REQUIRE(min(min(a, 3), min(b, 2)) == min(a, min(b, 2)));
  REQUIRE(max(2, 3) == Expr(3));
  REQUIRE(min(a, largest) == a);
  REQUIRE(max(a, smallest) == a);
}

TEST_CASE("expressions are limited as they are made") {
  const auto power = [](Expr base, int exponent) {
    Expr value = 1;
    for (int i = 0; i < exponent; ++i) value = value * base;
    return value;
  };
  REQUIRE(power(a, 64) == power(power(a, 8), 8));
  REQUIRE(2 * power(a, 64) - power(a, 64) == power(a, 64));  // a coefficient is not a factor
  REQUIRE_THROWS_WITH(power(a, 65), mentions("a product of 65 factors, expected at most 64"));
  REQUIRE_THROWS_AS(power(a, 33) * power(b, 32), Unsupported);
  REQUIRE_THROWS_AS(power(a + b, 65), Unsupported);

  // The same node twice at each level: few nodes, but 2^n paths.
  const auto nested = [](int levels) {
    Expr value = a;
    for (int i = 0; i < levels; ++i) value = max(mod(value, b), floor_div(value, c));
    return value;
  };
  REQUIRE(to_string(nested(10)).size() < 100'000);
  REQUIRE_THROWS_WITH(nested(20), mentions("terms and factors, expected at most 65536"));
}

TEST_CASE("the symbols of an expression are sorted by name, each once") { REQUIRE(floor_div(c * a, b + a).free_symbols() == std::vector<Expr>{a, b, c}); }

TEST_CASE("overflow is an error, not a wrapped size") {
  REQUIRE_THROWS_AS(Expr(largest) + 1, Unsupported);
  REQUIRE_THROWS_AS(Expr(largest) * 2, Unsupported);
  REQUIRE_THROWS_AS((Expr(largest) * a) + a, Unsupported);
  REQUIRE_NOTHROW(floor_div(floor_div(a, int64_t{1} << 40), int64_t{1} << 40));
  REQUIRE(mod(smallest, 10) == Expr(2));
}

TEST_CASE("a product of large sums is refused, not expanded") {
  Expr product(1);
  REQUIRE_THROWS_AS(
      [&] {
        for (int i = 0; i < 40; ++i) product = product * (Expr::symbol(fmt::format("p{}", i)) + Expr::symbol(fmt::format("q{}", i)));
      }(),
      Unsupported);
}

TEST_CASE("symbols: names, free symbols, substitution") {
  REQUIRE_THROWS_AS(Expr::symbol("2a"), InternalError);
  REQUIRE_THROWS_AS(Expr::symbol("a b"), InternalError);
  const Expr e = floor_div(b + a, 2) * c;
  REQUIRE(e.free_symbols() == std::vector<Expr>{a, b, c});
  REQUIRE(e.depends_on(b));
  REQUIRE_FALSE(e.depends_on(Expr::symbol("d")));
  REQUIRE(substitute(e, {{"a", b}, {"b", a}}) == e);
  REQUIRE(substitute(e, {{"a", Expr(3)}, {"b", Expr(5)}}) == 4 * c);
}

TEST_CASE("equal names and values are one expression, in all threads") {
  // More than a thread remembers.
  const auto make = [] {
    std::vector<Expr> made;
    for (int round = 0; round < 2; ++round)
      for (int i = 0; i < 2000; ++i) {
        made.push_back(Expr::symbol("v" + std::to_string(i)));
        made.push_back(Expr(100 * i));
      }
    return made;
  };
  const std::vector<Expr> here = make();
  std::vector<Expr> there;
  std::thread([&] { there = make(); }).join();
  REQUIRE(here == there);
  for (int i = 0; i < 2000; ++i) {
    REQUIRE(here[2 * i].name() == "v" + std::to_string(i));
    REQUIRE(here[2 * i + 1].constant() == 100 * i);
    REQUIRE(here[2 * i + 4000] == here[2 * i]);
    REQUIRE(here[2 * i + 4001] == here[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) REQUIRE_THROWS_AS(Expr::symbol("2x"), InternalError);
}

TEST_CASE("linear parts") {
  const Expr e = 3 * a + b * a + 7 * c - 2;
  Expr coefficient, rest;
  REQUIRE(split_linear(e, a, &coefficient, &rest));
  REQUIRE(coefficient == b + 3);
  REQUIRE(rest == 7 * c - 2);
  REQUIRE_FALSE(split_linear(a * a, a, &coefficient, &rest));
  REQUIRE_FALSE(split_linear(floor_div(a, 2), a, &coefficient, &rest));
  const auto terms = linear_terms(e);
  REQUIRE(terms.size() == 4);
  REQUIRE(terms[0].monomial == Expr(1));
  REQUIRE(terms[0].coefficient == -2);
}

TEST_CASE("parsing") {
  REQUIRE(parse("128*s0 + 3") == 128 * Expr::symbol("s0") + 3);
  REQUIRE(parse("floordiv(a, 2) - mod(b, 4)*2") == floor_div(a, 2) - 2 * mod(b, 4));
  REQUIRE(parse("min(a, b, 3)") == min(min(a, b), 3));
  REQUIRE(parse("-(a + 2)") == -a - 2);
  REQUIRE(parse("stmt.3 + 1") == Expr::symbol("stmt.3") + 1);
  for (const Expr e : {Expr(smallest), a + smallest, smallest * a, b + smallest * a}) REQUIRE(parse(to_string(e)) == e);
  for (const char* bad :
       {"", "a +", "a b", "(a", "floordiv(a)", "mod(a, b, c)", "unknown(a)", "min()", "a / b", "3x", "*a", "floordiv(a, 0)", "99999999999999999999"})
    REQUIRE_THROWS_AS(parse(bad), UserError);
  REQUIRE_THROWS_AS(parse(std::string(100000, '(')), UserError);
  REQUIRE_THROWS_AS(parse(std::string(100000, '-')), UserError);
}

TEST_CASE("evaluation") {
  const auto value_of = [](std::string_view name) -> int64_t {
    if (name == "a") return -7;
    if (name == "b") return 0;
    throw_user_error("no value for {}", name);
  };
  REQUIRE(evaluate(floor_div(a, 2) + 10 * mod(a, 4) + max(a, b), value_of) == -4 + 10);
  REQUIRE_THROWS_AS(evaluate(floor_div(a, b), value_of), UserError);
  REQUIRE_THROWS_AS(evaluate(c, value_of), UserError);
}
