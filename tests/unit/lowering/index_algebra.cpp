// Index expressions over a space: divisions that extents resolve, and bijections.
#include "ir/loops/index_algebra.h"

#include "ir/loops/region_rewrite.h"
#include "unit/catch.h"

using namespace cxxinductor;
using loops::Space;

namespace {

sym::Expr e(std::string_view text) { return sym::parse(text); }

struct Fixture {
  sym::Assumptions assumptions;
  Space space{assumptions};
  Fixture() {
    for (const char* symbol : {"s0", "s1"}) assumptions.set_range(symbol, {1, 1 << 20});
    space.add(e("h"), 12);
    space.add(e("d"), 64);
    space.add(e("i"), e("s0"));
    space.add(e("j"), e("s1"));
  }
};

}  // namespace

TEST_CASE("divisions go where the extents allow", "[index]") {
  Fixture f;
  auto simplified = [&](std::string_view text) { return sym::to_string(f.space.simplify(e(text))); };
  CHECK(simplified("floordiv(64*h + d, 64)") == "h");
  CHECK(simplified("mod(64*h + d, 64)") == "d");
  CHECK(simplified("floordiv(64*h + d, 128)") == "floordiv(h, 2)");
  CHECK(simplified("mod(64*h + d, 128)") == sym::to_string(e("d + 64*mod(h, 2)")));
  CHECK(simplified("mod(64*h + d, 16)") == "mod(d, 16)");
  CHECK(simplified("floordiv(i*s1 + j, s1)") == "i");
  CHECK(simplified("mod(i*s1 + j, s1)") == "j");
  CHECK(simplified("floordiv(i*s1*64 + j*64 + d, 64*s1)") == "i");
  CHECK(simplified("64*floordiv(d + 32, 64) + mod(d + 32, 64)") == sym::to_string(e("d + 32")));
  CHECK(simplified("mod(h, 5)") == "mod(h, 5)");
  CHECK(simplified("floordiv(d, 64)") == "0");
}

TEST_CASE("simplified divisions have the same values", "[index]") {
  sym::Assumptions assumptions;
  Space space(assumptions);
  space.add(e("a"), 6);
  space.add(e("b"), 4);
  space.add(e("c"), 10);
  uint64_t seed = 7;
  auto next = [&seed](int64_t n) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<int64_t>((seed >> 33) % static_cast<uint64_t>(n));
  };
  for (int round = 0; round < 2000; ++round) {
    sym::Expr sum = next(5) * e("a") * (1 + next(12)) + e("b") * next(9) + e("c") * next(7) + next(20) - 5;
    sym::Expr expr = round % 2 ? sym::floor_div(sum, 1 + next(24)) : sym::mod(sum, 1 + next(24));
    if (next(2)) expr = sym::mod(expr + e("b"), 1 + next(6));
    sym::Expr simple = space.simplify(expr);
    for (int sample = 0; sample < 20; ++sample) {
      int64_t a = next(6), b = next(4), c = next(10);
      auto value = [&](std::string_view name) { return name == "a" ? a : name == "b" ? b : c; };
      INFO(sym::to_string(expr) << " -> " << sym::to_string(simple));
      REQUIRE(sym::evaluate(expr, value) == sym::evaluate(simple, value));
    }
  }
}

TEST_CASE("mixed radix coordinates are recognised", "[index]") {
  Fixture f;
  CHECK(f.space.mixed_radix(e("64*h + d"), 768));
  CHECK(f.space.mixed_radix(e("i*s1 + j"), e("s0*s1")));
  CHECK_FALSE(f.space.mixed_radix(e("64*h + d"), 800));
  CHECK_FALSE(f.space.mixed_radix(e("64*h + d + 1"), 768));
  CHECK_FALSE(f.space.mixed_radix(e("32*h + d"), 768));
  CHECK(f.space.mixed_radix(e("0"), 1));
  CHECK(f.space.is_bijection({e("i"), e("64*h + d")}, {e("s0"), 768}));
  CHECK_FALSE(f.space.is_bijection({e("d"), e("d")}, {64, 64}));
  CHECK_FALSE(f.space.is_bijection({e("i")}, {e("s1")}));
}

TEST_CASE("digits are solved for", "[index]") {
  Fixture f;
  sym::Assumptions assumptions;
  Space other(assumptions);
  other.add(e("c"), 768);
  auto digits = f.space.mixed_radix(e("64*h + d"), 768);
  REQUIRE(digits);
  loops::ExprMap solution;
  other.solve(*digits, e("c"), solution);
  CHECK(solution.at(e("h")) == e("floordiv(c, 64)"));
  CHECK(solution.at(e("d")) == e("mod(c, 64)"));
}

TEST_CASE("exact quotients", "[index]") {
  CHECK(loops::exact_quotient(e("12*s0*s1"), e("4*s0")) == e("3*s1"));
  CHECK(loops::exact_quotient(e("s0*s1 + s0"), e("s0")) == e("s1 + 1"));
  CHECK(loops::exact_quotient(e("s0*(s1 + 1)"), e("s1 + 1")) == e("s0"));
  CHECK_FALSE(loops::exact_quotient(e("s0 + 1"), e("s0")));
  CHECK_FALSE(loops::exact_quotient(e("7"), e("2")));
  CHECK_FALSE(loops::exact_quotient(e("7"), e("0")));
}

TEST_CASE("comparisons are decided where no value wraps", "[index]") {
  Fixture f;
  CHECK(f.space.decide(ScalarOp::Lt, e("64*h + d"), 768) == true);
  CHECK(f.space.decide(ScalarOp::Ge, e("i*s1 + j"), e("s0*s1")) == false);
  CHECK(f.space.decide(ScalarOp::Ne, e("h"), 20) == true);
  CHECK(f.space.decide(ScalarOp::Eq, e("h + 1"), e("1 + h")) == true);
  CHECK_FALSE(f.space.decide(ScalarOp::Lt, e("h"), 5).has_value());
  CHECK_FALSE(f.space.decide(ScalarOp::Ge, e("1152921504606846976*h"), 0).has_value());
  CHECK_FALSE(f.space.decide(ScalarOp::Ge, e("i*i*i*i"), 0).has_value());
  CHECK_FALSE(f.space.apply(ScalarOp::Mul, e("4611686018427387000*i"), 4096).has_value());
  CHECK_FALSE(f.space.apply(ScalarOp::Add, e("4611686018427387000*h"), e("h")).has_value());
  CHECK(f.space.apply(ScalarOp::Mul, e("i"), e("s1")) == e("i*s1"));
}
