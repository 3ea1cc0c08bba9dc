// Programs and targets that the tests of planning share.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "ir/loops/loops.h"
#include "ir/loops/text.h"
#include "ir/plan/plan.h"
#include "schedule/schedule.h"
#include "support/error.h"
#include "unit/make_plan.h"

namespace cxxinductor::schedule::test {

inline Target gpu() { return cuda_target("sm_90a", 132); }
inline Target cpu() { return cpu_target("x86-64-v3", 4); }

// The same text serves both targets: "on DEVICE" in it is replaced.
inline loops::Program parse_for(std::string text, const Target& target) {
  std::string device = target.device == DeviceType::Cuda ? "cuda:0" : "cpu";
  for (size_t at = text.find("DEVICE"); at != std::string::npos; at = text.find("DEVICE", at)) text.replace(at, 6, device);
  return loops::parse(text);
}

inline plan::Plan plan_for(const std::string& text, const Target& target) { return make_plan(parse_for(text, target), target, Options()); }

// For each size an update in place with a scale that a region of its own computes: p -= (2 * s + 1) * g.
// The scales' inputs lie where `scales_on` says: "", or " on cpu".
inline std::string updates(const std::vector<int64_t>& sizes, const std::string& scales_on = "") {
  std::string inputs, buffers, regions, outputs;
  for (size_t i = 0; i < sizes.size(); ++i) {
    inputs += fmt::format("{0}@p{1}: f32[{2}], @g{1}: f32[{2}], @s{1}: f32[]{3}", i ? ", " : "", i, sizes[i], scales_on);
    buffers += fmt::format("  temporary @t{}: f32[]\n", i);
    regions += fmt::format(R"(  region @scale{0} {{
    %0 = load @s{0}[]
    %1 = constant f32(2.0)
    %2 = mul(%0, %1)
    %3 = constant f32(1.0)
    %4 = add(%2, %3)
    store @t{0}[] = %4
  }}
  region @update{0} over i < {1} {{
    %0 = load @p{0}[i]
    %1 = load @g{0}[i]
    %2 = load @t{0}[]
    %3 = mul(%1, %2)
    %4 = sub(%0, %3)
    store @p{0}[i] = %4
  }}
)",
                           i, sizes[i]);
    outputs += fmt::format("{}@p{}", i ? ", " : "", i);
  }
  return fmt::format("program @updates on DEVICE ({}) {{\n{}{}  return {}\n}}\n", inputs, buffers, regions, outputs);
}

// One region for each count of channels: y[n, c, p] = relu(x[n, c + c0, p] * s[c]), where x has 4 channels more, and with
// `sums` the sum of y over n and p. shuffle: not 0, a seed for the order of the regions.
inline std::string layers(const std::vector<int64_t>& channels, int64_t pixels, bool sums, uint32_t shuffle = 0) {
  std::string inputs, buffers, outputs;
  std::vector<std::string> regions;
  for (size_t i = 0; i < channels.size(); ++i) {
    const int64_t c = channels[i];
    inputs += fmt::format("{0}@x{1}: f32[2, {2}, {3}], @s{1}: f32[{4}]", i ? ", " : "", i, c + 4, pixels, c);
    buffers += fmt::format("  output @y{}: f32[2, {}, {}]\n", i, c, pixels);
    if (sums) buffers += fmt::format("  output @z{}: f32[{}]\n", i, c);
    regions.push_back(fmt::format(R"(  region @layer{0} over i < 2, j < {1}, k < {2} {{
    %0 = load @x{0}[i, j + {3}, k]
    %1 = load @s{0}[j]
    %2 = mul(%0, %1)
    %3 = relu(%2)
    store @y{0}[i, j, k] = %3
{4}  }}
)",
                                  i, c, pixels, i % 4, sums ? fmt::format("    %4 = reduce<sum>(%3) over i, k\n    store @z{}[j] = %4\n", i) : std::string()));
    outputs += fmt::format("{}@y{}{}", i ? ", " : "", i, sums ? fmt::format(", @z{}", i) : "");
  }
  if (shuffle) std::shuffle(regions.begin(), regions.end(), std::mt19937(shuffle));
  std::string body;
  for (const std::string& region : regions) body += region;
  return fmt::format("program @layers on DEVICE ({}) {{\n{}{}  return {}\n}}\n", inputs, buffers, body, outputs);
}

inline std::vector<int64_t> growing(size_t count, int64_t first, int64_t step) {
  std::vector<int64_t> channels;
  for (size_t i = 0; i < count; ++i) channels.push_back(first + static_cast<int64_t>(i) * step);
  return channels;
}

inline constexpr const char* gelu_bias = R"(
program @gelu_bias on DEVICE (@x: bf16[512, 1024], @b: bf16[1024]) {
  output @y: bf16[512, 1024]
  region @n0 over i < 512, j < 1024 {
    %0 = load @x[i, j]
    %1 = load @b[j]
    %2 = cast<f32>(%0)
    %3 = cast<f32>(%1)
    %4 = add(%2, %3)
    %5 = cast<bf16>(%4)
    %6 = cast<f32>(%5)
    %7 = exp(%6)
    %8 = cast<bf16>(%7)
    store @y[i, j] = %8
  }
  return @y
})";

inline constexpr const char* flat_add = R"(
program @flat_add on DEVICE (@x: f32[s0, 8, 6], @y: f32[s0, 8, 6]) where 1 <= s0 <= 4096 {
  output @z: f32[s0, 8, 6]
  region @n0 over i < s0, j < 8, k < 6 {
    %0 = load @x[i, j, k]
    %1 = load @y[i, j, k]
    %2 = add(%0, %1)
    store @z[i, j, k] = %2
  }
  return @z
})";

inline constexpr const char* softmax = R"(
program @softmax on DEVICE (@x: bf16[s0, 1000]) where 1 <= s0 <= 65536 {
  output @y: bf16[s0, 1000]
  region @n0 over i < s0, j < 1000 {
    %0 = load @x[i, j]
    %1 = cast<f32>(%0)
    %2 = reduce<max>(%1) over j
    %3 = sub(%1, %2)
    %4 = exp(%3)
    %5 = reduce<sum>(%4) over j
    %6 = div(%4, %5)
    %7 = cast<bf16>(%6)
    store @y[i, j] = %7
  }
  return @y
})";

inline constexpr const char* softmax_dynamic_row = R"(
program @softmax_dynamic on DEVICE (@x: f32[s0, s1]) where 1 <= s0 <= 4096, 1 <= s1 <= 4096 {
  output @y: f32[s0, s1]
  region @n0 over i < s0, j < s1 {
    %0 = load @x[i, j]
    %1 = reduce<max>(%0) over j
    %2 = sub(%0, %1)
    %3 = exp(%2)
    %4 = reduce<sum>(%3) over j
    %5 = div(%3, %4)
    store @y[i, j] = %5
  }
  return @y
})";

inline constexpr const char* layer_norm = R"(
program @layer_norm on DEVICE (@x: bf16[64, 768], @r: bf16[64, 768], @w: bf16[768], @b: bf16[768]) {
  output @s: bf16[64, 768]
  output @y: bf16[64, 768]
  region @n0 over i < 64, j < 768 {
    %x0 = load @x[i, j]
    %x1 = cast<f32>(%x0)
    %r0 = load @r[i, j]
    %r1 = cast<f32>(%r0)
    %s0 = add(%x1, %r1)
    %s1 = cast<bf16>(%s0)
    store @s[i, j] = %s1
    %s2 = cast<f32>(%s1)
    %m = reduce<welford>(%s2) over j
    %m2 = project<1>(%m)
    %n = constant f32(768)
    %v = div(%m2, %n)
    %e = constant f32(1e-5)
    %ve = add(%v, %e)
    %rs = rsqrt(%ve)
    %c = sub(%s2, %m)
    %h = mul(%c, %rs)
    %w0 = load @w[j]
    %w1 = cast<f32>(%w0)
    %hw = mul(%h, %w1)
    %b0 = load @b[j]
    %b1 = cast<f32>(%b0)
    %hb = add(%hw, %b1)
    %o = cast<bf16>(%hb)
    store @y[i, j] = %o
  }
  return @s, @y
})";

inline constexpr const char* column_sum = R"(
program @column_sum on DEVICE (@x: f32[256, 96]) {
  output @y: f32[96]
  region @n0 over j < 96, reduced < 256 {
    %0 = load @x[reduced, j]
    %1 = reduce<sum>(%0) over reduced
    store @y[j] = %1
  }
  return @y
})";

inline constexpr const char* tall_column_sum = R"(
program @tall_column_sum on DEVICE (@x: bf16[512, 128]) {
  output @y: bf16[128]
  region @n0 over j < 128, k < 512 {
    %0 = load @x[k, j]
    %1 = cast<f32>(%0)
    %2 = reduce<sum>(%1) over k
    %3 = cast<bf16>(%2)
    store @y[j] = %3
  }
  return @y
})";

inline constexpr const char* full_sum = R"(
program @full_sum on DEVICE (@x: f32[128, 1024]) {
  output @y: f32[]
  region @n0 over i < 128, j < 1024 {
    %0 = load @x[i, j]
    %1 = mul(%0, %0)
    %2 = reduce<sum>(%1) over i, j
    store @y[] = %2
  }
  return @y
})";

// Batch norm's statistics: few channels, long rows.
inline constexpr const char* channel_statistics = R"(
program @channel_statistics on DEVICE (@x: f32[16, 4, 2048]) {
  output @mean: f32[4]
  output @var: f32[4]
  region @n0 over c < 4, n < 16, p < 2048 {
    %0 = load @x[n, c, p]
    %1 = reduce<welford>(%0) over n, p
    %2 = project<1>(%1)
    %3 = constant f32(32768)
    %4 = div(%2, %3)
    store @mean[c] = %1
    store @var[c] = %4
  }
  return @mean, @var
})";

inline constexpr const char* long_row_sum = R"(
program @long_row_sum on DEVICE (@x: f64[32768]) {
  output @y: f64[]
  region @n0 over j < 32768 {
    %0 = load @x[j]
    %1 = reduce<sum>(%0) over j
    store @y[] = %1
  }
  return @y
})";

inline constexpr const char* padded_cat = R"(
program @padded_cat on DEVICE (@x: f32[12, 20], @y: f32[12, 9]) {
  output @z: f32[12, 32]
  region @n0 over i < 12, j < 32 {
    %0 = index (j)
    %1 = constant i64(20)
    %2 = lt(%0, %1)
    %3 = load @x[i, j] if %2 else f32(0)
    %4 = constant i64(29)
    %5 = lt(%0, %4)
    %6 = constant i64(19)
    %7 = gt(%0, %6)
    %8 = logical_and(%5, %7)
    %9 = load @y[i, j - 20] if %8 else f32(0.5)
    %10 = add(%3, %9)
    store @z[i, j] = %10
  }
  return @z
})";

inline constexpr const char* channels_last = R"(
program @channels_last on DEVICE (@x: f16[16, 8, 32, 32] strides [8192, 1, 256, 8], @b: f16[8]) {
  output @y: f16[16, 8, 32, 32] strides [8192, 1, 256, 8]
  region @n0 over n < 16, c < 8, h < 32, w < 32 {
    %0 = load @x[n, c, h, w]
    %1 = load @b[c]
    %2 = cast<f32>(%0)
    %3 = cast<f32>(%1)
    %4 = add(%2, %3)
    %5 = cast<f16>(%4)
    store @y[n, c, h, w] = %5
  }
  return @y
})";

inline constexpr const char* transpose_add = R"(
program @transpose_add on DEVICE (@x: f32[192, 160], @y: f32[160, 192]) {
  output @z: f32[160, 192]
  region @n0 over i < 160, j < 192 {
    %0 = load @x[j, i]
    %1 = load @y[i, j]
    %2 = add(%0, %1)
    store @z[i, j] = %2
  }
  return @z
})";

inline constexpr const char* transpose_narrow = R"(
program @transpose_narrow on DEVICE (@x: bf16[2, 200, 136], @y: bf16[2, 136, 200], @w: bf16[2, 200, 136]) {
  output @z: bf16[2, 136, 200]
  region @n0 over b < 2, i < 136, j < 200 {
    %0 = load @x[b, j, i]
    %1 = cast<f32>(%0)
    %2 = load @y[b, i, j]
    %3 = cast<f32>(%2)
    %4 = load @w[b, j, i]
    %5 = cast<f32>(%4)
    %6 = sub(%1, %3)
    %7 = mul(%6, %5)
    %8 = cast<bf16>(%7)
    store @z[b, i, j] = %8
  }
  return @z
})";

inline constexpr const char* arg_max = R"(
program @arg_max on DEVICE (@x: f32[6, 20, 7]) {
  output @y: i64[20]
  region @n0 over j < 20, i < 6, k < 7 {
    %0 = load @x[i, j, k]
    %1 = reduce<argmax>(%0) over i, k
    store @y[j] = %1
  }
  return @y
})";

inline constexpr const char* embedding = R"(
program @embedding on DEVICE (@t: f32[50, 64], @i: i64[s0]) where 1 <= s0 <= 512 {
  output @y: f32[s0, 64]
  region @n0 over a < s0, b < 64 {
    %0 = load @i[a]
    check %0 < (50) "embedding"
    %1 = load @t[%0, b]
    store @y[a, b] = %1
  }
  return @y
})";

// Two equal blocks: elementwise, row-wise, elementwise; temporaries between them.
inline constexpr const char* two_blocks = R"(
program @two_blocks on DEVICE (@x: f32[32, 256], @w1: f32[256], @w2: f32[256]) {
  output @y: f32[32, 256]
  temporary @a: f32[32, 256]
  temporary @b: f32[32, 256]
  temporary @c: f32[32, 256]
  region @n0 over i < 32, j < 256 {
    %0 = load @x[i, j]
    %1 = load @w1[j]
    %2 = mul(%0, %1)
    store @a[i, j] = %2
  }
  region @n1 over i < 32, j < 256 {
    %0 = load @a[i, j]
    %1 = reduce<max>(%0) over j
    %2 = sub(%0, %1)
    store @b[i, j] = %2
  }
  region @n2 over p < 32, q < 256 {
    %0 = load @b[p, q]
    %1 = load @w2[q]
    %2 = mul(%0, %1)
    store @c[p, q] = %2
  }
  region @n3 over i < 32, j < 256 {
    %0 = load @c[i, j]
    %1 = reduce<max>(%0) over j
    %2 = sub(%0, %1)
    store @y[i, j] = %2
  }
  return @y
})";

inline constexpr const char* all_programs[] = {
    gelu_bias,    flat_add,   softmax,       softmax_dynamic_row, layer_norm, column_sum, tall_column_sum, full_sum,        channel_statistics,
    long_row_sum, padded_cat, channels_last, transpose_add,       arg_max,    embedding,  two_blocks,      transpose_narrow};

}  // namespace cxxinductor::schedule::test
