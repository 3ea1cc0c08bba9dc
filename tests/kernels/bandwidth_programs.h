// Memory-bound programs of one size: TYPE, ROWS and N are replaced.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "unit/replaced.h"

namespace cxxinductor::tests {

inline constexpr const char* gelu_chain = R"(
program @gelu on cuda:0 (@x: TYPE[ROWS, N], @b: TYPE[N], @y: TYPE[ROWS, N]) {
  output @z: TYPE[ROWS, N]
  region @n0 over i < ROWS, j < N {
    %0 = load @x[i, j]
    %1 = cast<f32>(%0)
    %2 = load @b[j]
    %3 = cast<f32>(%2)
    %4 = add(%1, %3)
    %5 = cast<TYPE>(%4)
    %6 = cast<f32>(%5)
    %7 = gelu(%6)
    %8 = cast<TYPE>(%7)
    %9 = cast<f32>(%8)
    %10 = load @y[i, j]
    %11 = cast<f32>(%10)
    %12 = mul(%9, %11)
    %13 = cast<TYPE>(%12)
    store @z[i, j] = %13
  }
  return @z
})";

inline constexpr const char* add = R"(
program @add on cuda:0 (@x: TYPE[ROWS, N], @y: TYPE[ROWS, N]) {
  output @z: TYPE[ROWS, N]
  region @n0 over i < ROWS, j < N {
    %0 = load @x[i, j]
    %1 = cast<f32>(%0)
    %2 = load @y[i, j]
    %3 = cast<f32>(%2)
    %4 = add(%1, %3)
    %5 = cast<TYPE>(%4)
    store @z[i, j] = %5
  }
  return @z
})";

inline constexpr const char* softmax = R"(
program @softmax on cuda:0 (@x: TYPE[ROWS, N]) {
  output @y: TYPE[ROWS, N]
  region @n0 over i < ROWS, j < N {
    %0 = load @x[i, j]
    %1 = cast<f32>(%0)
    %2 = reduce<max>(%1) over j
    %3 = sub(%1, %2)
    %4 = exp(%3)
    %5 = reduce<sum>(%4) over j
    %6 = div(%4, %5)
    %7 = cast<TYPE>(%6)
    store @y[i, j] = %7
  }
  return @y
})";

inline constexpr const char* layer_norm = R"(
program @layer_norm on cuda:0 (@x: TYPE[ROWS, N], @w: TYPE[N], @b: TYPE[N]) {
  output @y: TYPE[ROWS, N]
  region @n0 over i < ROWS, j < N {
    %0 = load @x[i, j]
    %x = cast<f32>(%0)
    %m = reduce<welford>(%x) over j
    %m2 = project<1>(%m)
    %n = constant f32(N)
    %v = div(%m2, %n)
    %e = constant f32(1e-5)
    %ve = add(%v, %e)
    %rs = rsqrt(%ve)
    %c = sub(%x, %m)
    %h = mul(%c, %rs)
    %w0 = load @w[j]
    %w1 = cast<f32>(%w0)
    %hw = mul(%h, %w1)
    %b0 = load @b[j]
    %b1 = cast<f32>(%b0)
    %hb = add(%hw, %b1)
    %o = cast<TYPE>(%hb)
    store @y[i, j] = %o
  }
  return @y
})";

inline constexpr const char* rms_norm = R"(
program @rms_norm on cuda:0 (@x: TYPE[ROWS, N], @w: TYPE[N]) {
  output @y: TYPE[ROWS, N]
  region @n0 over i < ROWS, j < N {
    %0 = load @x[i, j]
    %x = cast<f32>(%0)
    %q = mul(%x, %x)
    %s = reduce<sum>(%q) over j
    %n = constant f32(N)
    %v = div(%s, %n)
    %e = constant f32(1e-5)
    %ve = add(%v, %e)
    %rs = rsqrt(%ve)
    %h = mul(%x, %rs)
    %h1 = cast<TYPE>(%h)
    %h2 = cast<f32>(%h1)
    %w0 = load @w[j]
    %w1 = cast<f32>(%w0)
    %hw = mul(%h2, %w1)
    %o = cast<TYPE>(%hw)
    store @y[i, j] = %o
  }
  return @y
})";

inline constexpr const char* row_sum = R"(
program @row_sum on cuda:0 (@x: TYPE[ROWS, N]) {
  output @y: TYPE[ROWS]
  region @n0 over i < ROWS, j < N {
    %0 = load @x[i, j]
    %1 = cast<f32>(%0)
    %2 = reduce<sum>(%1) over j
    %3 = cast<TYPE>(%2)
    store @y[i] = %3
  }
  return @y
})";

inline constexpr const char* column_sum = R"(
program @column_sum on cuda:0 (@x: TYPE[ROWS, N]) {
  output @y: TYPE[N]
  region @n0 over j < N, i < ROWS {
    %0 = load @x[i, j]
    %1 = cast<f32>(%0)
    %2 = reduce<sum>(%1) over i
    %3 = cast<TYPE>(%2)
    store @y[j] = %3
  }
  return @y
})";

inline constexpr const char* transpose_add = R"(
program @transpose_add on cuda:0 (@x: TYPE[N, ROWS], @y: TYPE[ROWS, N]) {
  output @z: TYPE[ROWS, N]
  region @n0 over i < ROWS, j < N {
    %0 = load @x[j, i]
    %1 = cast<f32>(%0)
    %2 = load @y[i, j]
    %3 = cast<f32>(%2)
    %4 = add(%1, %3)
    %5 = cast<TYPE>(%4)
    store @z[i, j] = %5
  }
  return @z
})";

inline std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& words) {
  for (const auto& [word, with] : words) text = ::replaced(std::move(text), word, with);
  return text;
}

// Rows of n elements.
inline std::string sized(const char* text, const std::string& type, int64_t rows, int64_t n) {
  const std::string size = std::to_string(n);
  return replaced(
      text, {{"TYPE", type}, {"ROWS", std::to_string(rows)}, {"[N", "[" + size}, {", N]", ", " + size + "]"}, {"< N", "< " + size}, {"(N)", "(" + size + ")"}});
}

}  // namespace cxxinductor::tests
