#include "sym/print_c.h"

#include <limits>

#include "unit/catch.h"

using namespace cxxinductor::sym;

TEST_CASE("C spelling") {
  const Expr i = Expr::symbol("i"), n = Expr::symbol("n");
  Assumptions assumptions;
  assumptions.set_range("i", {0, 1000});
  REQUIRE(to_c(4 * i + 3, assumptions) == "((4 * i) + 3)");
  REQUIRE(to_c(4 * i - n - 3, assumptions) == "((4 * i) - n - 3)");
  REQUIRE(to_c(floor_div(i, 8), assumptions) == "(i / 8)");
  REQUIRE(to_c(mod(i, 8), assumptions) == "(i % 8)");
  REQUIRE(to_c(floor_div(n, 8), assumptions) == "cxxi_floor_div(n, 8)");
  REQUIRE(to_c(mod(i, n), assumptions) == "cxxi_floor_mod(i, n)");
  REQUIRE(to_c(min(min(i, n), 5), assumptions) == "cxxi_min_int(cxxi_min_int(5, i), n)");
  REQUIRE(to_c(i + 1, assumptions, {[](std::string_view s) { return "v_" + std::string(s); }, "LL"}) == "(v_i + 1LL)");
  REQUIRE(to_c(std::numeric_limits<int64_t>::min(), assumptions, {{}, "LL"}) == "(-9223372036854775807LL - 1)");
}
