// Random ops on CUDA against a plain simulation of ATen's kernels: threads, their calls, and who gets which word.
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "interp/interp.h"
#include "ir/random_threads.h"
#include "unit/catch.h"
#include "unit/frontend/calls.h"

namespace cxxinductor::frontend {
namespace {

using D = DType;
using Words = std::array<uint32_t, 4>;
constexpr int64_t seed = 0x123456789abcdef, generator_offset = 8 << 2;  // the generator stands before the eighth call

// Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3.
Words philox(uint64_t key, uint64_t call, uint64_t sequence) {
  Words x{uint32_t(call), uint32_t(call >> 32), uint32_t(sequence), uint32_t(sequence >> 32)};
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  for (int i = 0; i < 10; ++i, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const uint64_t p = uint64_t{x[0]} * 0xD2511F53u, q = uint64_t{x[2]} * 0xCD9E8D57u;
    x = {uint32_t(q >> 32) ^ x[1] ^ k0, uint32_t(q), uint32_t(p >> 32) ^ x[3] ^ k1, uint32_t(p)};
  }
  return x;
}

// One multiprocessor for 512 threads, so that small counts come to several turns.
Target small_target() {
  Target target = cuda_target("sm_90a", 1);
  target.threads_per_multiprocessor = 512;
  return target;
}

// What ATen's grid-stride kernel stores where n elements are shared by its threads, `numbers` of a call to each.
template <class Transform>  // (words of the call, number) -> value
std::vector<double> simulated(int64_t n, int numbers, const Transform& transform) {
  std::vector<double> out(static_cast<size_t>(n), -1);
  const int64_t threads = 256 * std::min<int64_t>(2, (n + 255) / 256);
  for (int64_t thread = 0; thread < threads; ++thread) {
    uint64_t call = generator_offset / 4;
    const int64_t all = threads * numbers, rounded = ((n - 1) / all + 1) * all;
    for (int64_t start = thread; start < rounded; start += all) {
      const Words words = philox(seed, call++, static_cast<uint64_t>(thread));
      for (int i = 0; i < numbers; ++i)
        if (const int64_t element = start + threads * i; element < n) out[static_cast<size_t>(element)] = transform(words, i);
    }
  }
  return out;
}

struct Drawn {
  Calls calls{kCuda};
  std::vector<double> values;  // row-major
  int64_t count = 0, numbers = 0, externs = 0;
};

// Imports one call, runs the graph with the state of a generator, and gives what it drew.
Drawn draw(const std::string& name, std::vector<Arg> args, TensorType result, std::vector<std::pair<std::string, Arg>> kwargs = {},
           interp::Symbols symbols = {}) {
  Drawn drawn;
  drawn.calls.environment.gpus[{DeviceType::Cuda, 0}] = small_target();
  drawn.calls.output(drawn.calls.call(name, std::move(args), std::move(result), std::move(kwargs)));
  const graph::Graph graph = drawn.calls.import();
  interp::Arguments arguments;
  arguments.symbols = std::move(symbols);
  const auto state = [&](const std::string& callee, const std::string&, const std::vector<Arg>& given, const std::vector<interp::Tensor>&) {
    REQUIRE(callee == "cxxinductor::philox_state");
    ++drawn.externs;
    drawn.count = *given.at(0).as<ArgList>()->at(0).as<int64_t>();
    drawn.numbers = *given.at(1).as<ArgList>()->at(0).as<int64_t>();
    interp::Tensor tensor{D::I64, {3}, {}};
    for (int64_t value : {seed, generator_offset / 4, random_threads(drawn.count, small_target())})
      tensor.elements.push_back(Scalar::from_integer(D::I64, value));
    return std::vector{tensor};
  };
  const std::vector<interp::Tensor> results = interp::run(graph, arguments, state);
  for (const Scalar& s : results.at(0).elements) drawn.values.push_back(s.as_real());
  return drawn;
}

double rounded(double value, DType dtype) { return cast(Scalar::from_real(D::F64, value), dtype).real(); }
float unit(uint32_t word) { return std::fmaf(static_cast<float>(word), 0x1p-32f, 0x1p-33f); }
double long_unit(uint32_t x, uint32_t y) { return static_cast<double>(uint64_t{x} ^ uint64_t{y} << 21) * 0x1p-53 + 0x1p-54; }
float normal(const Words& words, int number) {
  const uint32_t x = words[number / 2 * 2], y = words[number / 2 * 2 + 1];
  const float angle = std::fmaf(static_cast<float>(y), 0x1p-32f * 6.2831855f, 0x1p-33f * 6.2831855f);
  const float radius = std::sqrt(-2.0f * std::log(unit(x)));
  return (number % 2 == 0 ? std::sin(angle) : std::cos(angle)) * radius;
}

// Around the number of threads, of the numbers of one turn, odd, and several turns.
constexpr int64_t counts[] = {1, 255, 256, 257, 511, 512, 513, 1023, 1025, 2047, 2048, 2049, 5003};

bool imported(const std::string& name, std::vector<Arg> args, TensorType result, std::vector<std::pair<std::string, Arg>> kwargs = {}, Device device = kCuda) {
  Calls calls(device);
  calls.environment.gpus[{DeviceType::Cuda, 0}] = small_target();
  calls.input("sized", {DType::F32, {sym::Expr::symbol("s1")}});  // gives the symbol
  calls.output(calls.call(name, std::move(args), std::move(result), std::move(kwargs)));
  const std::string text = graph::print(calls.import());
  const bool draws = text.find("philox_pair") != std::string::npos, called = text.find("extern \"aten::") != std::string::npos;
  CHECK(draws != called);
  return draws;
}

}  // namespace

TEST_CASE("a pair of Philox words is that of the published algorithm") {
  const auto pair = [](int64_t key, int64_t call, int64_t sequence, int64_t which) {
    std::vector<Scalar> operands;
    for (int64_t value : {key, call, sequence, which}) operands.push_back(Scalar::from_integer(D::I64, value));
    return static_cast<uint64_t>(evaluate(ScalarOp::PhiloxPair, operands).integer());
  };
  CHECK(pair(0, 0, 0, 0) == 0x6627e8d5e169c58d);  // Random123's known answers
  CHECK(pair(0, 0, 0, 1) == 0xbc57ac4c9b00dbd8);
  const Words words = philox(seed, (int64_t{1} << 33) + 5, 77);
  CHECK(pair(seed, (int64_t{1} << 33) + 5, 77, 1) == (uint64_t{words[2]} << 32 | words[3]));
}

TEST_CASE("rand gives elements the words that ATen's threads draw") {
  for (int64_t n : counts) {
    INFO(n);
    const Drawn drawn = draw("aten::rand", {ArgList{n}}, {D::F32, {n}});
    CHECK(drawn.values == simulated(n, 4, [](const Words& w, int i) { return unit(w[i]) == 1 ? 0 : unit(w[i]); }));
    CHECK(drawn.count == n);
    CHECK(drawn.numbers == 4);
    CHECK(drawn.externs == 1);
  }
}

TEST_CASE("uniform scales with one rounding, and what rounds to the upper end is the lower one") {
  for (DType dtype : {D::F32, D::BF16, D::F16}) {
    INFO(to_string(dtype));
    const float low = static_cast<float>(rounded(-1.3, dtype)), high = static_cast<float>(rounded(2.7, dtype));
    const auto range = static_cast<float>(rounded(high - low, dtype));
    const auto expected = simulated(5003, 4, [&](const Words& w, int i) -> double {
      const double value = rounded(std::fmaf(unit(w[i]), range, low), dtype);
      return value == high ? low : value;
    });
    Calls calls;
    const Arg x = calls.input("x", {dtype, {5003}});
    calls.environment.gpus[{DeviceType::Cuda, 0}] = small_target();
    calls.output(calls.call("aten::uniform", {x, -1.3, 2.7}, {dtype, {5003}}));
    CHECK(draw("aten::uniform", {Arg(), -1.3, 2.7}, {dtype, {5003}}).values == expected);
    CHECK(count_externs(calls.import()) == 1);
  }
  for (int64_t n : counts) {
    INFO(n);
    CHECK(draw("aten::rand", {ArgList{n}}, {D::F64, {n}}).values == simulated(n, 2, [](const Words& w, int i) { return long_unit(w[2 * i], w[2 * i + 1]); }));
  }
}

TEST_CASE("normal numbers come in pairs, by sine and cosine") {
  for (int64_t n : counts) {
    INFO(n);
    CHECK(draw("aten::randn", {ArgList{n}}, {D::F32, {n}}).values == simulated(n, 4, [](const Words& w, int i) { return normal(w, i); }));
  }
  CHECK(draw("aten::normal.float_float", {0.3, 1.7, ArgList{int64_t{700}}}, {D::BF16, {700}}).values ==
        simulated(700, 4, [](const Words& w, int i) { return rounded(std::fmaf(normal(w, i), 1.7f, 0.3f), D::BF16); }));
  const std::vector<double> wide = draw("aten::randn", {ArgList{int64_t{1100}}}, {D::F64, {1100}}).values;
  const std::vector<double> expected = simulated(1100, 2, [](const Words& w, int i) {
    const double u = long_unit(w[0], w[1]), v = 2 * long_unit(w[2], w[3]) * 3.14159265358979323846;
    return (i == 0 ? std::sin(v) : std::cos(v)) * std::sqrt(-2 * std::log(u));
  });
  for (size_t i = 0; i < wide.size(); ++i) CHECK(std::abs(wide[i] - expected[i]) < 1e-14);
}

TEST_CASE("numbers about a tensor of means are rounded before the mean is added") {
  Calls calls;
  calls.environment.gpus[{DeviceType::Cuda, 0}] = small_target();
  const Arg mean = calls.input("mean", {D::BF16, {9}});
  const auto lines = body_of(calls.text(calls.call("aten::normal.Tensor_float", {mean, 2.0}, {D::BF16, {9}})));
  REQUIRE(lines.size() > 5);
  const auto last = lines.end();
  CHECK(last[-5].find("= cast<bf16>(") != std::string::npos);
  CHECK(last[-1].find("= cast<bf16>(") != std::string::npos);
  CHECK(count_externs(calls.import()) == 1);
}

TEST_CASE("randint takes a word, or two where the range is wide") {
  for (int64_t n : counts) {
    INFO(n);
    CHECK(draw("aten::randint.low", {int64_t{-3}, int64_t{9}, ArgList{n}}, {D::I64, {n}}).values ==
          simulated(n, 4, [](const Words& w, int i) { return int64_t{w[i] % 12} - 3; }));
    const uint64_t range = uint64_t{1} << 40;
    CHECK(draw("aten::randint", {static_cast<int64_t>(range), ArgList{n}}, {D::I64, {n}}).values ==
          simulated(n, 2, [&](const Words& w, int i) { return (uint64_t{w[2 * i]} << 32 | w[2 * i + 1]) % range; }));
  }
  const int64_t threshold = int64_t{1} << 28;
  CHECK(draw("aten::randint", {threshold - 1, ArgList{int64_t{9}}}, {D::I32, {9}}).numbers == 4);
  CHECK(draw("aten::randint", {threshold, ArgList{int64_t{9}}}, {D::I32, {9}}).numbers == 2);
  CHECK(draw("aten::randint_like", {Arg(), int64_t{200}}, {D::U8, {600}}).values == simulated(600, 4, [](const Words& w, int i) { return w[i] % 200; }));
  CHECK(draw("aten::randint_like.low_dtype", {Arg(), int64_t{-5}, int64_t{6}}, {D::F16, {600}}).values ==
        simulated(600, 4, [](const Words& w, int i) { return int64_t{w[i] % 11} - 5; }));
  const int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  CHECK(draw("aten::randint.low", {least, most, ArgList{int64_t{300}}}, {D::I64, {300}}).values == simulated(300, 2, [&](const Words& w, int i) {
          const uint64_t word = uint64_t{w[2 * i]} << 32 | w[2 * i + 1];
          return static_cast<int64_t>(word % std::numeric_limits<uint64_t>::max() + static_cast<uint64_t>(least));
        }));
}

TEST_CASE("bernoulli compares as numbers would") {
  for (double p : {0.0, 0.3, 1.0}) {
    INFO(p);
    const auto below = [p](const Words& w, int i) { return unit(w[i]) < static_cast<float>(p) ? 1 : 0; };
    CHECK(draw("aten::bernoulli.p", {Arg(), p}, {D::F32, {2049}}).values == simulated(2049, 4, below));
    CHECK(draw("aten::bernoulli.p", {Arg(), p}, {D::Bool, {300}}).values == simulated(300, 4, below));
    CHECK(draw("aten::bernoulli.p", {Arg(), p}, {D::F64, {1100}}).values ==
          simulated(1100, 2, [p](const Words& w, int i) { return long_unit(w[2 * i], w[2 * i + 1]) < p ? 1 : 0; }));
  }
}

TEST_CASE("exponential, log-normal and Cauchy numbers") {
  CHECK(draw("aten::exponential", {Arg(), 2.5}, {D::F32, {2049}}).values == simulated(2049, 4, [](const Words& w, int i) {
          const float number = unit(w[i]);
          return -1.0f / 2.5f * (number >= 1 - 0x1p-24f ? -0x1p-24f : std::log(number));
        }));
  CHECK(draw("aten::log_normal", {Arg(), 0.5, 1.5}, {D::F32, {600}}).values ==
        simulated(600, 4, [](const Words& w, int i) { return std::exp(std::fmaf(normal(w, i), 1.5f, 0.5f)); }));
  CHECK(draw("aten::cauchy", {Arg(), 0.5, 1.5}, {D::F32, {600}}).values == simulated(600, 4, [](const Words& w, int i) {
          const float number = std::max(std::min(unit(w[i]), 1 - 0x1p-23f), 0x1p-23f);
          return std::fmaf(std::tan(3.14159265358979323846f * (number - 0.5f)), 1.5f, 0.5f);
        }));
}

TEST_CASE("elements are numbered in the order of memory") {
  const int64_t rows = 40, columns = 31;
  const auto row_major = simulated(rows * columns, 4, [](const Words& w, int i) { return w[i] % 1000; });
  const auto transposed = draw("aten::randint_like", {Arg(), int64_t{1000}}, {D::I64, {rows, columns}, {1, rows}}).values;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) CHECK(transposed[static_cast<size_t>(r * columns + c)] == row_major[static_cast<size_t>(c * rows + r)]);
  // Channels last, and a dimension of one element anywhere.
  CHECK(imported("aten::rand_like", {Arg()}, {D::F32, {2, 3, 4, 5}, {60, 1, 15, 3}}));
  CHECK(imported("aten::rand_like", {Arg()}, {D::F32, {2, 1, 4, 5}, {20, 7, 5, 1}}));
}

TEST_CASE("a symbolic count takes its threads from the state") {
  const sym::Expr n = sym::Expr::symbol("s0");
  Calls calls;
  calls.environment.gpus[{DeviceType::Cuda, 0}] = small_target();
  calls.graph.assumptions.set_range("s0", {1, 10000});
  calls.input("sized", {D::F32, {n}});
  calls.output(calls.call("aten::rand", {ArgList{Arg(n)}}, {D::F32, {n}}));
  const std::string text = graph::print(calls.import());
  CHECK(text.find("philox_state\"([expr(s0)], [4], device(cuda:0))") != std::string::npos);
  CHECK(text.find("philox_pair") != std::string::npos);
}

TEST_CASE("what is not proven equal stays a call") {
  const ArgList nine{int64_t{9}};
  CHECK(imported("aten::rand", {nine}, {D::F32, {9}}));
  CHECK(!imported("aten::rand", {nine}, {D::F32, {9}}, {}, kCpu));
  CHECK(!imported("aten::rand", {nine}, {D::F32, {9}}, {{"generator", int64_t{1}}}));
  CHECK(!imported("aten::rand_like", {Arg()}, {D::F32, {9, 4}, {8, 2}}));  // holes in between
  CHECK(!imported("aten::rand", {nine}, {D::F32, {int64_t{1} << 29}}));    // split by ATen
  CHECK(!imported("aten::uniform", {Arg(), 2.0, 1.0}, {D::F32, {9}}));     // raises
  CHECK(!imported("aten::uniform", {Arg(), 0.0, 1e6}, {D::F16, {9}}));
  CHECK(!imported("aten::normal_functional", {Arg(), 0.0, -1.0}, {D::F32, {9}}));
  CHECK(!imported("aten::bernoulli.p", {Arg(), 1.5}, {D::F32, {9}}));
  CHECK(!imported("aten::exponential", {Arg(), 0.0}, {D::F32, {9}}));
  CHECK(!imported("aten::randint", {int64_t{300}, nine}, {D::U8, {9}}));
  CHECK(!imported("aten::randint", {int64_t{3000}, nine}, {D::F16, {9}}));
  CHECK(!imported("aten::randint.low", {int64_t{4}, int64_t{4}, nine}, {D::I64, {9}}));
  CHECK(!imported("aten::randint", {Arg(sym::Expr::symbol("s1")), nine}, {D::I64, {9}}));
}

}  // namespace cxxinductor::frontend
