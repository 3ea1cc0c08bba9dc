#include "model/conditions.h"

#include "support/error.h"
#include "unit/catch.h"

namespace cxxinductor::model {

TEST_CASE("conditions are 1 where they hold, and 0 where not") {
  const auto value = [](const std::string& text, int64_t size) { return sym::evaluate(parse_condition(text), [size](std::string_view) { return size; }); };
  const std::string s0 = "Symbol('s0', integer=True)", four = "Integer(4)";
  for (int64_t size : {3, 4, 5}) {
    CHECK(value("Equality(" + s0 + ", " + four + ")", size) == (size == 4));
    CHECK(value("Unequality(" + s0 + ", " + four + ")", size) == (size != 4));
    CHECK(value("StrictLessThan(" + s0 + ", " + four + ")", size) == (size < 4));
    CHECK(value("GreaterThan(" + s0 + ", " + four + ")", size) == (size >= 4));
    CHECK(value("Or(StrictLessThan(" + s0 + ", " + four + "), Not(LessThan(" + s0 + ", " + four + ")))", size) == (size != 4));
  }
  CHECK(parse_condition("true").is_constant(1));
  CHECK_THROWS_AS(parse_condition("Xor(Integer(1), Integer(2))"), Unsupported);
  CHECK_THROWS(parse_condition("true)"));
}

}  // namespace cxxinductor::model
