// Each mapping of the CPU target, compiled and run, against loops written out by hand in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include "kernels/cpu_program.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/replaced.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;

namespace {

// Different values, some negative, some equal.
Numbers some_numbers(size_t count, double scale = 1) {
  Numbers numbers;
  uint32_t state = 12345;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    numbers.push_back(static_cast<double>(static_cast<int32_t>(state >> 16) - 32768) / 8192.0 * scale);
  }
  return numbers;
}
double as_f32(double v) { return static_cast<float>(v); }
double as_bf16(double v) { return round_to(DType::BF16, v); }

void check_close(const Numbers& expected, const Numbers& found, double tolerance = 1e-5) {
  REQUIRE(expected.size() == found.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(found[i])) continue;
    if (expected[i] == found[i]) continue;
    if (std::fabs(expected[i] - found[i]) <= tolerance * (1 + std::fabs(expected[i]))) continue;
    INFO("element " << i << " of " << expected.size() << ": expected " << expected[i] << ", found " << found[i]);
    REQUIRE(false);
  }
}

}  // namespace

TEST_CASE("pointwise: every length around the vector width, several threads", "[cpu]") {
  for (const Target& target : {machine_target(), narrow_target()}) {
    CpuProgram program(R"(program @p on cpu (@x: f32[s0], @y: f32[s0]) where 0 <= s0 <= 1000000 {
      output @z: f32[s0]
      region @n over i < s0 {
        %a = load @x[i]
        %b = load @y[i]
        %c = add(%a, %b)
        %d = relu(%c)
        store @z[i] = %d
      }
      return @z
    })",
                       target);
    for (int64_t n : {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 100, 1023, 1024, 1025, 5000, 300001}) {
      const Numbers x = some_numbers(static_cast<size_t>(n)), y = some_numbers(static_cast<size_t>(n), 0.5);
      Numbers expected;
      for (size_t i = 0; i < x.size(); ++i) expected.push_back(std::max(as_f32(as_f32(x[i]) + as_f32(y[i])), 0.0));
      check_close(expected, program.run({program.tensor(DType::F32, {n}, x), program.tensor(DType::F32, {n}, y)})[0], 0);
    }
  }
}

TEST_CASE("pointwise: transposed and broadcast operands, bf16, three dimensions", "[cpu]") {
  CpuProgram program(R"(program @p on cpu (@x: bf16[s0, 5, 33], @t: f32[33, s0] , @b: bf16[33]) where 1 <= s0 <= 100 {
    output @z: bf16[s0, 5, 33]
    region @n over i < s0, j < 5, k < 33 {
      %x = load @x[i, j, k]
      %x1 = cast<f32>(%x)
      %t = load @t[k, i]
      %b = load @b[k]
      %b1 = cast<f32>(%b)
      %m = mul(%x1, %t)
      %a = add(%m, %b1)
      %o = cast<bf16>(%a)
      store @z[i, j, k] = %o
    }
    return @z
  })");
  for (int64_t s : {1, 3, 40}) {
    const auto n = static_cast<size_t>(s);
    const Numbers x = some_numbers(n * 165), t = some_numbers(n * 33), b = some_numbers(33);
    Numbers expected;
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < 5; ++j) {
        for (size_t k = 0; k < 33; ++k) {
          const double product = as_f32(as_bf16(x[(i * 5 + j) * 33 + k]) * as_f32(t[k * n + i]));
          expected.push_back(as_bf16(as_f32(product + as_bf16(b[k]))));
        }
      }
    }
    check_close(expected,
                program.run({program.tensor(DType::BF16, {s, 5, 33}, x), program.tensor(DType::F32, {33, s}, t), program.tensor(DType::BF16, {33}, b)})[0], 0);
  }
}

TEST_CASE("pointwise: masks, indices, gathers and their checks", "[cpu]") {
  CpuProgram program(R"(program @p on cpu (@x: f32[s0, 20], @i: i64[s1]) where 1 <= s0 <= 1000, 0 <= s1 <= 100000 {
    output @pad: f32[s1, 24]
    output @place: i64[s1, 24]
    region @n over r < s1, c < 24 {
      %i = load @i[r]
      check %i < (s0) "index_select: index out of range" from "model.py":7 "block" "aten.index_select"
      %p = index(c - 2)
      %low = constant i64(0)
      %high = constant i64(20)
      %ge = ge(%p, %low)
      %lt = lt(%p, %high)
      %in = logical_and(%ge, %lt)
      %v = load @x[%i, c - 2] if %in else f32(-1.5)
      store @pad[r, c] = %v
      %q = index(24*r + floordiv(c, 3))
      store @place[r, c] = %q
    }
    return @pad, @place
  })");
  const int64_t rows = 50, count = 3000;
  const Numbers x = some_numbers(static_cast<size_t>(rows) * 20);
  Numbers indices, pad, place;
  for (int64_t r = 0; r < count; ++r) indices.push_back(static_cast<double>(r * 7 % rows));
  for (size_t r = 0; r < static_cast<size_t>(count); ++r) {
    for (size_t c = 0; c < 24; ++c) {
      pad.push_back(c < 2 || c >= 22 ? -1.5 : as_f32(x[static_cast<size_t>(indices[r]) * 20 + c - 2]));
      place.push_back(static_cast<double>(24 * r + c / 3));
    }
  }
  const auto run = [&](const Numbers& i) { return program.run({program.tensor(DType::F32, {rows, 20}, x), program.tensor(DType::I64, {count}, i)}); };
  const std::vector<Numbers> found = run(indices);
  check_close(pad, found[0], 0);
  check_close(place, found[1], 0);
  indices[2999] = 50;
  CHECK_THROWS_AS(run(indices), UserError);
  CHECK_THROWS_WITH(run(indices),
                    mentions("index_select: index out of range: index 50 is out of bounds") && mentions("0 <= index < 50") && mentions("model.py:7"));
  indices[2999] = -1;
  CHECK_THROWS_WITH(run(indices), mentions("index -1"));
  indices[2999] = 0;
  CHECK_NOTHROW(run(indices));
}

namespace {

const char* const softmax_over_rows = R"(program @softmax on cpu (@x: bf16[s0, $N]) where 1 <= s0 <= 65536 $WHERE {
  output @y: bf16[s0, $N]
  region @n over i < s0, j < $N {
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

}  // namespace

TEST_CASE("rows: softmax, persistent, looped and of dynamic length", "[cpu]") {
  for (const std::string& length : {std::string("1"), std::string("7"), std::string("1000"), std::string("40000"), std::string("s1")}) {
    const bool dynamic = length == "s1";
    CpuProgram program(replaced(replaced(softmax_over_rows, "$N", length), "$WHERE", dynamic ? ", 1 <= s1 <= 10000" : ""));
    if (length != "1") {
      REQUIRE(program.kernel().mapping.as<plan::CpuRows>());
      CHECK(is_persistent(program.kernel().mapping) == (length == "1000" || length == "7"));
    }
    for (int64_t n : dynamic ? std::vector<int64_t>{1, 15, 16, 130, 999} : std::vector<int64_t>{std::stoll(length)}) {
      const int64_t rows = 5;
      const Numbers x = some_numbers(static_cast<size_t>(rows * n));
      Numbers expected;
      for (size_t i = 0; i < 5; ++i) {
        Numbers row;
        double most = -1e9, sum = 0;
        for (size_t j = 0; j < static_cast<size_t>(n); ++j) row.push_back(as_bf16(x[i * static_cast<size_t>(n) + j]));
        for (double v : row) most = std::max(most, v);
        for (double v : row) sum += std::exp(v - most);
        for (double v : row) expected.push_back(std::exp(v - most) / sum);
      }
      check_close(expected, program.run({program.tensor(DType::BF16, {rows, n}, x)})[0], 4e-3);
    }
  }
}

TEST_CASE("rows: layer norm with Welford, an intermediate output, two reductions", "[cpu]") {
  CpuProgram program(R"(program @layer_norm on cpu (@x: f32[s0, 770], @w: f32[770]) where 1 <= s0 <= 10000 {
    output @y: f32[s0, 770]
    output @mean: f32[s0]
    output @rstd: f32[s0]
    region @n over i < s0, j < 770 {
      %x = load @x[i, j]
      %m = reduce<welford>(%x) over j
      %m2 = project<1>(%m)
      %n = constant f32(770)
      %v = div(%m2, %n)
      %e = constant f32(1e-5)
      %ve = add(%v, %e)
      %rs = rsqrt(%ve)
      store @mean[i] = %m
      store @rstd[i] = %rs
      %c = sub(%x, %m)
      %h = mul(%c, %rs)
      %w = load @w[j]
      %o = mul(%h, %w)
      store @y[i, j] = %o
    }
    return @y, @mean, @rstd
  })");
  const Numbers x = some_numbers(20 * 770, 3), w = some_numbers(770);
  Numbers y, means, rstds;
  for (size_t i = 0; i < 20; ++i) {
    double mean = 0, m2 = 0;
    for (size_t j = 0; j < 770; ++j) mean += as_f32(x[i * 770 + j]) / 770;
    for (size_t j = 0; j < 770; ++j) m2 += (as_f32(x[i * 770 + j]) - mean) * (as_f32(x[i * 770 + j]) - mean);
    const double rstd = 1 / std::sqrt(m2 / 770 + 1e-5);
    means.push_back(mean);
    rstds.push_back(rstd);
    for (size_t j = 0; j < 770; ++j) y.push_back((as_f32(x[i * 770 + j]) - mean) * rstd * as_f32(w[j]));
  }
  const std::vector<Numbers> found = program.run({program.tensor(DType::F32, {20, 770}, x), program.tensor(DType::F32, {770}, w)});
  check_close(y, found[0], 2e-6);
  check_close(means, found[1], 1e-6);
  check_close(rstds, found[2], 1e-6);
}

TEST_CASE("rows: positions of extremes, ties and NaN; truth values; several dtypes", "[cpu]") {
  for (const char* dtype : {"f32", "i64", "bf16", "u8", "f64"}) {
    const DType type = *find_dtype(dtype);
    CpuProgram program(replaced(R"(program @p on cpu (@x: $T[s0, 6, s1]) where 1 <= s0 <= 100, 1 <= s1 <= 1000 {
      output @max: i64[s0]
      output @min: i64[s0]
      output @largest: $T[s0]
      output @any: bool[s0]
      output @all: bool[s0]
      region @n over i < s0, j < 6, k < s1 {
        %x = load @x[i, j, k]
        %a = reduce<argmax>(%x) over j, k
        %b = reduce<argmin>(%x) over j, k
        %c = reduce<max>(%x) over j, k
        %d = reduce<any>(%x) over j, k
        %e = reduce<all>(%x) over j, k
        store @max[i] = %a
        store @min[i] = %b
        store @largest[i] = %c
        store @any[i] = %d
        store @all[i] = %e
      }
      return @max, @min, @largest, @any, @all
    })",
                                "$T", dtype));
    for (int64_t n : {1, 5, 16, 50}) {
      const auto length = static_cast<size_t>(6 * n);
      Numbers x;
      for (size_t i = 0; i < 4 * length; ++i) x.push_back(static_cast<double>(i * 13 % 40 / 2));
      if (is_float(type)) x[length + length / 2] = std::numeric_limits<double>::quiet_NaN();
      for (size_t i = 2 * length; i < 3 * length; ++i) x[i] = 0;
      Numbers arg_max, arg_min, largest, any, all;
      for (size_t i = 0; i < 4; ++i) {
        const Numbers row(x.begin() + static_cast<long>(i * length), x.begin() + static_cast<long>((i + 1) * length));
        const auto nan = std::find_if(row.begin(), row.end(), [](double v) { return std::isnan(v); });
        const bool has_nan = nan != row.end();
        arg_max.push_back(static_cast<double>((has_nan ? nan : std::max_element(row.begin(), row.end())) - row.begin()));
        arg_min.push_back(static_cast<double>((has_nan ? nan : std::min_element(row.begin(), row.end())) - row.begin()));
        largest.push_back(has_nan ? *nan : *std::max_element(row.begin(), row.end()));
        any.push_back(std::any_of(row.begin(), row.end(), [](double v) { return v != 0; }));
        all.push_back(std::all_of(row.begin(), row.end(), [](double v) { return v != 0; }));
      }
      const std::vector<Numbers> found = program.run({program.tensor(type, {4, 6, n}, x)});
      INFO(dtype << " " << n);
      check_close(arg_max, found[0], 0);
      check_close(arg_min, found[1], 0);
      check_close(largest, found[2], 0);
      check_close(any, found[3], 0);
      check_close(all, found[4], 0);
    }
  }
}

TEST_CASE("columns: sums, extremes and what follows them, cut strips, several outer points", "[cpu]") {
  for (const Target& target : {machine_target(), narrow_target()}) {
    CpuProgram program(
        R"(program @p on cpu (@x: f32[s0, s1, s2]) where 1 <= s0 <= 100, 0 <= s1 <= 10000, 1 <= s2 <= 10000 {
      output @mean: f32[s0, s2]
      output @m2: f32[s0, s2]
      output @at: i64[s0, s2]
      output @c: f32[s0, s1, s2]
      region @n over i < s0, j < s2, k < s1 {
        %x = load @x[i, k, j]
        %s = reduce<welford>(%x) over k
        %p = project<1>(%s)
        %a = reduce<argmax>(%x) over k
        store @mean[i, j] = %s
        store @m2[i, j] = %p
        store @at[i, j] = %a
        %d = sub(%x, %s)
        store @c[i, k, j] = %d
      }
      return @mean, @m2, @at, @c
    })",
        target);
    CHECK(program.kernel().mapping.as<plan::CpuColumns>());
    for (auto [a, b, c] : std::vector<std::array<size_t, 3>>{{1, 1, 1}, {2, 300, 70}, {3, 5, 16}, {1, 200, 129}, {2, 9, 3}}) {
      const Numbers x = some_numbers(a * b * c);
      Numbers mean, m2, at, centred(a * b * c);
      for (size_t i = 0; i < a; ++i) {
        for (size_t j = 0; j < c; ++j) {
          double m = 0, q = 0;
          size_t best = 0;
          const auto value = [&](size_t k) { return as_f32(x[(i * b + k) * c + j]); };
          for (size_t k = 0; k < b; ++k) {
            m += value(k) / static_cast<double>(b);
            if (value(k) > value(best)) best = k;
          }
          for (size_t k = 0; k < b; ++k) q += (value(k) - m) * (value(k) - m);
          for (size_t k = 0; k < b; ++k) centred[(i * b + k) * c + j] = value(k) - m;
          mean.push_back(m);
          m2.push_back(q);
          at.push_back(static_cast<double>(best));
        }
      }
      const auto size = [](size_t n) { return static_cast<int64_t>(n); };
      const std::vector<Numbers> found = program.run({program.tensor(DType::F32, {size(a), size(b), size(c)}, x)});
      INFO(a << " " << b << " " << c);
      check_close(mean, found[0], 2e-6);
      check_close(m2, found[1], 2e-6);
      check_close(at, found[2], 0);
      check_close(centred, found[3], 2e-6);
    }
  }
}

TEST_CASE("the first of equal extremes is found in rows of nothing but the least value", "[cpu]") {
  for (const char* dtype : {"f32", "i32", "i8"}) {
    const DType type = *find_dtype(dtype);
    CpuProgram program(replaced(R"(program @p on cpu (@x: $T[s0, s1]) where 1 <= s0 <= 100, 1 <= s1 <= 1000 {
      output @max: i64[s0]
      output @min: i64[s0]
      region @n over i < s0, j < s1 {
        %x = load @x[i, j]
        %a = reduce<argmax>(%x) over j
        %b = reduce<argmin>(%x) over j
        store @max[i] = %a
        store @min[i] = %b
      }
      return @max, @min
    })",
                                "$T", dtype));
    const double infinity = std::numeric_limits<double>::infinity();
    const double least = is_float(type) ? -infinity : type == DType::I8 ? -128 : std::numeric_limits<int32_t>::min();
    const double most = is_float(type) ? infinity : type == DType::I8 ? 127 : std::numeric_limits<int32_t>::max();
    for (int64_t n : {1, 17, 64, 300}) {
      // Rows: all least, all most, least but for one, most but for one.
      Numbers x;
      for (int row = 0; row < 4; ++row)
        for (int64_t j = 0; j < n; ++j) x.push_back(row < 2 || j != n / 2 ? (row % 2 ? most : least) : 5);
      const std::vector<Numbers> found = program.run({program.tensor(type, {4, n}, x)});
      const auto middle = static_cast<double>(n / 2);
      INFO(dtype << " " << n);
      CHECK(found[0] == Numbers{0, 0, middle, 0});
      CHECK(found[1] == Numbers{0, 0, 0, middle});
    }
  }
}

TEST_CASE("reductions of nothing give the identity", "[cpu]") {
  CpuProgram program(R"(program @p on cpu (@x: f32[3, s1]) where 0 <= s1 <= 100 {
    output @s: f32[3]
    output @p: f32[3]
    output @a: bool[3]
    region @n over i < 3, j < s1 {
      %x = load @x[i, j]
      %s = reduce<sum>(%x) over j
      %p = reduce<prod>(%x) over j
      %a = reduce<all>(%x) over j
      store @s[i] = %s
      store @p[i] = %p
      store @a[i] = %a
    }
    return @s, @p, @a
  })");
  const std::vector<Numbers> found = program.run({program.tensor(DType::F32, {3, 0}, {})});
  CHECK(found[0] == Numbers{0, 0, 0});
  CHECK(found[1] == Numbers{1, 1, 1});
  CHECK(found[2] == Numbers{1, 1, 1});
}

TEST_CASE("long sums in f32 lose no more than pairwise summation does", "[cpu]") {
  CpuProgram rows(R"(program @p on cpu (@x: f32[1, s1]) where 1 <= s1 <= 100000000 {
    output @s: f32[1]
    region @n over i < 1, j < s1 { %x = load @x[i, j] %s = reduce<sum>(%x) over j store @s[i] = %s }
    return @s
  })");
  CpuProgram columns(R"(program @p on cpu (@x: f32[s1, 64]) where 1 <= s1 <= 100000000 {
    output @s: f32[64]
    region @n over i < 64, j < s1 { %x = load @x[j, i] %s = reduce<sum>(%x) over j store @s[i] = %s }
    return @s
  })");
  const Numbers ones(1 << 21, 0.1);
  const double exact = as_f32(0.1);
  CHECK(rows.run({rows.tensor(DType::F32, {1, 1 << 21}, ones)})[0][0] == Approx(exact * (1 << 21)).epsilon(3e-6));
  CHECK(columns.run({columns.tensor(DType::F32, {1 << 15, 64}, ones)})[0][63] == Approx(exact * (1 << 15)).epsilon(3e-6));
}

TEST_CASE("four threads call one compiled program at once", "[cpu]") {
  CpuProgram program(replaced(replaced(softmax_over_rows, "$N", "100"), "$WHERE", ""), machine_target(), 4);
  const Numbers x = some_numbers(4000);
  const Numbers expected = program.run({program.tensor(DType::BF16, {40, 100}, x)})[0];
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        wrong += program.run({program.tensor(DType::BF16, {40, 100}, x)})[0] != expected;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
