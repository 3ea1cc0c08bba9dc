#include "sym/simplify.h"

#include <limits>

#include "support/error.h"
#include "sym/algebra.h"
#include "unit/catch.h"

using namespace cxxinductor;
using namespace cxxinductor::sym;

namespace {

const Expr i = Expr::symbol("i"), j = Expr::symbol("j"), k = Expr::symbol("k"), s = Expr::symbol("s"), n = Expr::symbol("n");
constexpr int64_t unbounded = std::numeric_limits<int64_t>::max();

Assumptions ranges() {
  Assumptions assumptions;
  assumptions.set_range("i", {0, 99});
  assumptions.set_range("j", {0, 3});
  assumptions.set_range("k", {0, 7});
  assumptions.set_range("s", {1, unbounded});
  assumptions.set_divisor("s", 8);
  return assumptions;
}
const Assumptions assumptions = ranges();

}  // namespace

TEST_CASE("bounds of sums whose terms share a symbol") {
  Assumptions sizes;
  sizes.set_range("s", {2, 8});
  sizes.set_range("t", {3, 5});
  const Expr s = Expr::symbol("s"), t = Expr::symbol("t");
  REQUIRE(bounds(s * t - s, sizes) == Interval{4, 32});
  REQUIRE(bounds(6 * s - 2 * s * t, sizes) == Interval{-32, 0});
  REQUIRE(bounds(s * s * t - s * s, sizes) == Interval{8, 256});
  REQUIRE(prove_less(s, s * t, sizes) == true);
  REQUIRE(bounds(s * t - 2, sizes) == Interval{4, 38});  // nothing is shared
}

TEST_CASE("bounds") {
  REQUIRE(bounds(4 * i - j, assumptions) == Interval{-3, 396});
  REQUIRE(bounds(i * k, assumptions) == Interval{0, 693});
  REQUIRE(bounds(floor_div(i, 8), assumptions) == Interval{0, 12});
  REQUIRE(bounds(mod(i, 8), assumptions) == Interval{0, 7});
  REQUIRE(bounds(mod(j, 8), assumptions) == Interval{0, 3});
  REQUIRE(bounds(mod(n, 8), assumptions) == Interval{0, 7});
  REQUIRE(bounds(n, assumptions) == Interval{});
  REQUIRE(bounds(s * s, assumptions) == Interval{1, unbounded});
  REQUIRE(bounds(s - n, assumptions) == Interval{});
  REQUIRE(bounds(min(s, 5), assumptions) == Interval{1, 5});
  REQUIRE(bounds(floor_div(i, n), assumptions) == Interval{});
  // A dividend beside its quotient.
  REQUIRE(bounds(s - floor_div(s, 2), assumptions) == Interval{1, unbounded});
  REQUIRE(bounds(s - floor_div(s + 1, 2), assumptions) == Interval{0, unbounded});
  REQUIRE(bounds(i - 3 * floor_div(i, 3), assumptions) == Interval{0, 2});
  REQUIRE(bounds(floor_div(i + 7, 4) - floor_div(i, 6), assumptions) == Interval{1, 10});
  // Huge, but not infinite.
  REQUIRE(bounds(Expr(unbounded) - j, assumptions).low == unbounded - 3);
}

TEST_CASE("divisors") {
  REQUIRE(known_divisor(s, assumptions) == 8);
  REQUIRE(known_divisor(6 * s + 16 * i, assumptions) == 16);
  REQUIRE(known_divisor(floor_div(s, 4), assumptions) == 2);
  REQUIRE(known_divisor(mod(s, 12), assumptions) == 4);
  REQUIRE(known_divisor(Expr(0), assumptions) == 0);
  REQUIRE(prove_divides(4, s * i, assumptions));
  REQUIRE_FALSE(prove_divides(4, i, assumptions));
}

TEST_CASE("rules with ranges") {
  REQUIRE(simplify(mod(j, 4), assumptions) == j);
  REQUIRE(simplify(floor_div(j, 4), assumptions) == Expr(0));
  REQUIRE(simplify(floor_div(j - 4, 4), assumptions) == Expr(-1));
  REQUIRE(simplify(mod(j - 4, 4), assumptions) == j);
  REQUIRE(simplify(floor_div(4 * i + j, 4), assumptions) == i);
  REQUIRE(simplify(mod(4 * i + j, 4), assumptions) == j);
  REQUIRE(simplify(floor_div(32 * i + 8 * j + k, 8), assumptions) == 4 * i + j);
  REQUIRE(simplify(mod(floor_div(32 * i + 8 * j + k, 8), 4), assumptions) == j);
  REQUIRE(simplify(floor_div(8 * i + k, 16), assumptions) == floor_div(i, 2));
  REQUIRE(simplify(mod(8 * i + k, 16), assumptions) == 8 * mod(i, 2) + k);
  REQUIRE(simplify(mod(s, 4), assumptions) == Expr(0));
  REQUIRE(simplify(mod(s + j, 8), assumptions) == j);
  REQUIRE(simplify(floor_div(s + j, 8), assumptions) == floor_div(s, 8));
  REQUIRE(simplify(floor_div(mod(i, 32), 8), assumptions) == mod(floor_div(i, 8), 4));
}

TEST_CASE("a quotient and its remainder meet again") {
  REQUIRE(simplify(8 * floor_div(i, 8) + mod(i, 8), assumptions) == i);
  REQUIRE(simplify(24 * floor_div(i, 8) + 3 * mod(i, 8) + j, assumptions) == 3 * i + j);
  REQUIRE(simplify(8 * mod(floor_div(i, 8), 4) + mod(i, 8), assumptions) == mod(i, 32));
  REQUIRE(simplify(32 * floor_div(i, 32) + 8 * mod(floor_div(i, 8), 4) + mod(i, 8), assumptions) == i);
  REQUIRE(simplify(n * floor_div(i, n) + mod(i, n), assumptions) == i);
  REQUIRE(simplify(8 * floor_div(i, 8) + mod(j + i, 8), assumptions).kind() == Kind::Add);
}

TEST_CASE("extrema by bounds") {
  REQUIRE(simplify(min(i, 100), assumptions) == i);
  REQUIRE(simplify(max(i, 0), assumptions) == i);
  REQUIRE(simplify(max(s, 1), assumptions) == s);
  REQUIRE(simplify(min(s, s + i), assumptions) == s);
  REQUIRE(simplify(min(i, 50), assumptions) == min(i, 50));
  REQUIRE(simplify(max(n, n - j), assumptions) == n);
}

TEST_CASE("proofs") {
  REQUIRE(prove_less(i, 100, assumptions) == true);
  REQUIRE(prove_less(i, 0, assumptions) == false);
  REQUIRE(prove_less(i, 50, assumptions) == std::nullopt);
  REQUIRE(prove_less(s - 1, s, assumptions) == true);
  REQUIRE(prove_less(n, n + j, assumptions) == std::nullopt);
  REQUIRE(prove_less(s, unbounded, assumptions) == std::nullopt);
  REQUIRE_NOTHROW(prove_less(n, std::numeric_limits<int64_t>::min(), assumptions));
  REQUIRE(prove_equal((i + j) * (i + j), i * i + 2 * i * j + j * j, assumptions));
  REQUIRE(prove_equal(floor_div(4 * i + j, 4), i, assumptions));
  REQUIRE_FALSE(prove_equal(i, j, assumptions));
  // Terms that overflow when subtracted.
  const Expr large = (int64_t{1} << 62) * n;
  REQUIRE_FALSE(prove_equal(large, -large - large, assumptions));
}

TEST_CASE("a symbol known to one value is that value") {
  Assumptions one;
  one.set_range("n", {5, 5});
  REQUIRE(simplify(3 * n + i, one) == i + 15);
}

TEST_CASE("GiNaC: equality and linear equations") {
  REQUIRE(equal_as_polynomials((i + 1) * (i - 1), i * i - 1));
  REQUIRE_FALSE(equal_as_polynomials(i, i + 1));
  REQUIRE(equal_as_polynomials(floor_div(i, 2) * 2, 2 * floor_div(i, 2)));
  REQUIRE(solve_linear(2 * n + 4, 2 * s, n) == s - 2);
  REQUIRE(solve_linear(s * n, s * i, n) == i);
  REQUIRE(solve_linear(2 * n, s, n) == std::nullopt);
  REQUIRE(solve_linear(n * n, s, n) == std::nullopt);
  REQUIRE(solve_linear(s, i, n) == std::nullopt);
  REQUIRE(solve_linear(n + floor_div(n, 2), 5, n) == std::nullopt);
}

TEST_CASE("quotients that are exact multiply back") {
  CHECK(simplify(2 * floor_div(s, 2), assumptions) == s);
  CHECK(simplify(8 * floor_div(s + 3, 4), assumptions) == 2 * s);
  CHECK(prove_equal(s - floor_div(s + 1, 2), floor_div(s + 1, 2), assumptions));
  CHECK(prove_equal(2 * n * floor_div(s, 2), n * s, assumptions));
  CHECK_FALSE(prove_equal(2 * floor_div(i, 2), i, assumptions));
}
