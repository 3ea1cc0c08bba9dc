// Conversions between f32 and 16-bit floats on the CPU, bit for bit: every 16-bit pattern, and f32 patterns at, next to and
// between the halves of all of them, in vectors and in tails.
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/cpu_program.h"
#include "unit/catch.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;

namespace {

// Runs a program of one input and one output on bits.
template <class To, class From>
std::vector<To> run_bits(CpuProgram& program, DType from, const std::vector<From>& bits) {
  runtime::TensorRef input = program.tensor(from, {static_cast<int64_t>(bits.size())}, Numbers(bits.size()));
  std::memcpy(input.data, bits.data(), bits.size() * sizeof(From));
  std::vector<runtime::Value> values;
  values.emplace_back(std::move(input));
  const std::vector<runtime::Value> found = program.executable->run(program.host, std::move(values));
  std::vector<To> result(bits.size());
  std::memcpy(result.data(), found[0].tensor.data, result.size() * sizeof(To));
  return result;
}

CpuProgram converter(const std::string& from, const std::string& to, const Target& target) {
  return CpuProgram(fmt::format(R"(program @p on cpu (@x: {0}[s0]) where 0 <= s0 <= 10000000 {{
    output @y: {1}[s0]
    region @n over i < s0 {{ %x = load @x[i] %y = cast<{1}>(%x) store @y[i] = %y }}
    return @y
  }})",
                                from, to),
                    target);
}

// The value of a 16-bit float from its fields; no NaN.
double value_of(uint16_t bits, int mantissa_bits) {
  const int exponent_bits = 15 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  double value;
  if (exponent == (1 << exponent_bits) - 1)
    value = INFINITY;
  else if (exponent == 0)
    value = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  else
    value = std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return bits >> 15 ? -value : value;
}
bool is_nan(uint16_t bits, int mantissa_bits) {
  const uint16_t infinity = static_cast<uint16_t>(0x7fff >> mantissa_bits << mantissa_bits);
  return (bits & 0x7fff) > infinity;
}

// To nearest, ties to the even pattern, by search among all patterns of one sign.
uint16_t nearest(float value, int mantissa_bits) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(static_cast<double>(value));
  const uint16_t infinity = static_cast<uint16_t>(0x7fff >> mantissa_bits << mantissa_bits);
  uint16_t low = 0, high = infinity;  // value_of(low) <= size <= value_of(high)
  while (high - low > 1) {
    const uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    (value_of(middle, mantissa_bits) <= size ? low : high) = middle;
  }
  // The step beyond the largest number counts as if numbers went on.
  const double below = value_of(low, mantissa_bits);
  const double above = high == infinity ? 2 * below - value_of(static_cast<uint16_t>(low - 1), mantissa_bits) : value_of(high, mantissa_bits);
  const double to_below = size - below, to_above = above - size;
  const bool up = std::isinf(size) || to_above < to_below || (to_above == to_below && (low & 1));
  return static_cast<uint16_t>(sign | (up ? high : low));
}

}  // namespace

TEST_CASE("every 16-bit float becomes the f32 of the same value, and itself again", "[cpu]") {
  std::vector<uint16_t> all;
  for (uint32_t bits = 0; bits < 65536; ++bits) all.push_back(static_cast<uint16_t>(bits));
  all.insert(all.end(), {0x3f80, 0x7f81, 0xffff, 0x0001, 0x8000});  // a tail
  for (const Target& target : {machine_target(), cpu_target("x86-64-v3", 2)}) {
    for (const auto& [name, type, mantissa] : {std::tuple("bf16", DType::BF16, 7), std::tuple("f16", DType::F16, 10)}) {
      INFO(name << " on " << target.arch);
      CpuProgram up = converter(name, "f32", target), down = converter("f32", name, target);
      const auto wide = run_bits<uint32_t>(up, type, all);
      const auto again = run_bits<uint16_t>(down, DType::F32, wide);
      size_t wrong = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        const float value = std::bit_cast<float>(wide[i]);
        if (is_nan(all[i], mantissa)) {
          wrong += !std::isnan(value) || !is_nan(again[i], mantissa);
        } else {
          wrong += std::bit_cast<uint32_t>(static_cast<float>(value_of(all[i], mantissa))) != wide[i] || again[i] != all[i];
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("f32 is rounded to the nearest 16-bit float, ties to even", "[cpu]") {
  for (const auto& [name, mantissa] : {std::pair("bf16", 7), std::pair("f16", 10)}) {
    std::vector<uint32_t> patterns;
    const int drop = 23 - mantissa;
    const uint32_t half = 1u << (drop - 1);
    for (uint32_t top = 0; top < 1u << (32 - drop); top += name == std::string_view("f16") ? 3 : 1)
      for (uint32_t low : {0u, 1u, half - 1, half, half + 1, (1u << drop) - 1}) patterns.push_back(top << drop | low);
    uint32_t state = 1;  // subnormals of f16 have fewer bits: their halves lie anywhere
    for (int i = 0; i < 100003; ++i) patterns.push_back(state = state * 1664525u + 1013904223u);
    for (uint32_t exponent = 100; exponent < 114; ++exponent)
      for (uint32_t bit = 0; bit < 23; ++bit) patterns.push_back(exponent << 23 | 1u << bit);
    std::vector<uint16_t> expected;
    for (uint32_t bits : patterns) {
      const float value = std::bit_cast<float>(bits);
      expected.push_back(std::isnan(value) ? uint16_t{0} : nearest(value, mantissa));
    }
    for (const Target& target : {machine_target(), cpu_target("x86-64-v3", 2)}) {
      INFO(name << " on " << target.arch);
      CpuProgram down = converter("f32", name, target);
      const auto found = run_bits<uint16_t>(down, DType::F32, patterns);
      size_t wrong = 0;
      for (size_t i = 0; i < patterns.size(); ++i) {
        const bool nan = std::isnan(std::bit_cast<float>(patterns[i]));
        wrong += nan ? !is_nan(found[i], mantissa) : found[i] != expected[i];
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("integers of every width convert to every other type as one by one", "[cpu]") {
  const Numbers values = {0, 1, 2, 100, 126, 127, 3, 55, 64, 17, 9, 33, 71, 99, 120, 5, 6, 7, 8, 11, 12, 13, 90};
  const std::vector<std::string> dtypes = {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "bf16", "f16"};
  for (const Target& target : {machine_target(), cpu_target("x86-64-v3", 2)}) {
    // One unit for all targets of a conversion: an output each.
    for (const std::string& from : dtypes) {
      std::string outputs, body, results;
      for (const std::string& to : dtypes) {
        outputs += fmt::format("output @y_{0}: {0}[s0]\n", to);
        body += fmt::format("%{0} = cast<{0}>(%x)\nstore @y_{0}[i] = %{0}\n", to);
        results += (results.empty() ? "@y_" : ", @y_") + to;
      }
      // Its own dtype needs no cast.
      const std::string own = fmt::format("%{0} = cast<{0}>(%x)\nstore @y_{0}[i] = %{0}\n", from);
      body.replace(body.find(own), own.size(), fmt::format("store @y_{0}[i] = %x\n", from));
      CpuProgram program(fmt::format("program @p on cpu (@x: {}[s0]) where 0 <= s0 <= 1000 {{\n{}region @n over i < s0 {{\n"
                                     "%x = load @x[i]\n{}}}\nreturn {}\n}}",
                                     from, outputs, body, results),
                         target);
      Numbers many;
      for (int i = 0; i < 9; ++i) many.insert(many.end(), values.begin(), values.end());
      const std::vector<Numbers> found = program.run({program.tensor(*find_dtype(from), {static_cast<int64_t>(many.size())}, many)});
      for (size_t k = 0; k < dtypes.size(); ++k) {
        INFO(from << " to " << dtypes[k] << " on " << target.arch);
        CHECK(found[k] == many);
      }
    }
  }
}
