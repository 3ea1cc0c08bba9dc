// Loops passes on texts.
#include "ir/loops/text.h"
#include "ir/loops/verify.h"
#include "passes/pass_manager.h"
#include "unit/catch.h"

using namespace cxxinductor;

namespace {

std::string after_loops_passes(std::string_view text, const char* numerics = "eager") {
  loops::Program program = loops::parse(text);
  Options options;
  options.verify = "each";
  options.numerics = numerics;
  passes::run_loops_pipeline(program, options);
  return loops::print(program);
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("positions become coordinates and need no check", "[passes]") {
  std::string text = after_loops_passes(R"(program @f(@w: f32[16, 4]) where 1 <= s0 <= 12 {
    output @y: f32[s0, 4]
    region @n over i < s0, j < 4 {
      %p = index(i + 2)
      %zero = constant i64(0)
      %negative = lt(%p, %zero)
      %size = index(16)
      %wrapped = add(%p, %size)
      %at = where(%negative, %wrapped, %p)
      check %at < (16) "index"
      %v = load @w[%at, j]
      store @y[i, j] = %v
    }
    return @y
  })");
  INFO(text);
  CHECK(contains(text, "load @w[i + 2, j]"));
  CHECK_FALSE(contains(text, "check"));
  CHECK_FALSE(contains(text, "where("));
}

TEST_CASE("a check that the sizes do not decide stays", "[passes]") {
  std::string text = after_loops_passes(R"(program @f(@w: f32[16]) where 1 <= s0 <= 17 {
    output @y: f32[s0]
    region @n over i < s0 {
      %p = index(i)
      check %p < (16) "index"
      %v = load @w[%p]
      store @y[i] = %v
    }
    return @y
  })");
  CHECK(contains(text, "check"));
}

TEST_CASE("a product with a power of two needs no rounding to bf16, to f16 it does", "[passes]") {
  const auto scaled = [](const std::string& dtype, const std::string& factor) {
    const std::string text = after_loops_passes("program @f(@x: " + dtype + "[8]) {\n" + R"(    output @y: f32[8]
    region @n over i < 8 {
      %x = load @x[i]
      %f = cast<f32>(%x)
      %c = constant f32()" + factor + R"()
      %m = mul(%f, %c)
      %r = cast<)" + dtype + R"(>(%m)
      %g = cast<f32>(%r)
      %e = exp(%g)
      store @y[i] = %e
    }
    return @y
  })");
    INFO(text);
    return !contains(text, "cast<" + dtype + ">");
  };
  CHECK(scaled("bf16", "2.0"));
  CHECK(scaled("bf16", "-8.0"));
  CHECK_FALSE(scaled("bf16", "0.5"));  // subnormal numbers lose bits
  CHECK_FALSE(scaled("bf16", "3.0"));
  CHECK_FALSE(scaled("f16", "2.0"));  // overflows long before f32 does
}

TEST_CASE("roundings go where they change nothing, and all with fast numerics", "[passes]") {
  const char* program = R"(program @f(@x: bf16[8], @c: bool[8]) {
    output @y: f32[8]
    region @n over i < 8 {
      %x = load @x[i]
      %c = load @c[i]
      %f = cast<f32>(%x)
      %n = neg(%f)
      %w = where(%c, %f, %n)
      %r = cast<bf16>(%w)
      %g = cast<f32>(%r)
      %e = exp(%g)
      %s = cast<bf16>(%e)
      %t = cast<f32>(%s)
      %u = neg(%t)
      store @y[i] = %u
    }
    return @y
  })";
  std::string eager = after_loops_passes(program), fast = after_loops_passes(program, "fast");
  INFO(eager << fast);
  CHECK(contains(eager, "exp(%4)"));
  CHECK(contains(eager, "cast<bf16>(%5)"));
  CHECK_FALSE(contains(fast, "cast<bf16>"));
}
