// Each mapping of the CUDA target, its text run under emulation, against the CPU target's compiled kernels of the same
// program (which cpu_mappings.cpp compares with loops written by hand).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/compare.h"
#include "kernels/cpu_program.h"
#include "kernels/cuda_program.h"
#include "kernels/serial_row_programs.h"
#include "unit/catch.h"
#include "unit/make_plan.h"
#include "unit/schedule/plan_programs.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;
namespace programs = cxxinductor::schedule::test;
using plan::Variant;

namespace {

void compare(const std::string& text, const std::vector<std::map<std::string, int64_t>>& calls, const std::vector<Variant>& variants = {kVector32},
             double tolerance = 2e-2) {
  CpuProgram cpu(on_device(text, "cpu"));
  for (const Variant variant : variants) {
    CudaProgram cuda(on_device(text, "cuda:0"), variant);
    for (const auto& symbols : calls) {
      const std::vector<Input> inputs = make_inputs(cuda.executable->plan(), symbols);
      INFO(cuda.source().substr(cuda.source().find("typedef")));
      check_equal(run_on(cpu, inputs), run_on(cuda, inputs), tolerance);
    }
  }
}

}  // namespace

TEST_CASE("every planned program runs alike on both targets", "[cuda]") {
  for (const char* text : programs::all_programs) {
    DYNAMIC_SECTION(std::string_view(text).substr(1, 40)) { compare(text, {{{"s0", 5}, {"s1", 70}}}); }
  }
}

TEST_CASE("kernels that take sizes as arguments", "[cuda]") {
  for (const bool sums : {false, true}) compare(programs::layers(programs::growing(16, 3, 2), 6, sums), {{}}, {kVector32, kScalar32});
}

TEST_CASE("variants: elements one by one, 64-bit indices", "[cuda]") {
  for (const char* text : {programs::gelu_bias, programs::softmax, programs::layer_norm, programs::column_sum, programs::transpose_add,
                           programs::transpose_narrow, programs::embedding})
    compare(text, {{{"s0", 7}}}, {kScalar32, kVector64});
}

TEST_CASE("pointwise: every length around groups and blocks", "[cuda]") {
  const char* text = R"(program @p on DEVICE (@x: bf16[s0], @y: f32[s0]) where 1 <= s0 <= 100000 {
    output @z: f32[s0]
    output @t: bool[s0]
    region @n over i < s0 {
      %a = load @x[i]
      %a1 = cast<f32>(%a)
      %b = load @y[i]
      %c = add(%a1, %b)
      %d = lt(%a1, %b)
      store @z[i] = %c
      store @t[i] = %d
    }
    return @z, @t
  })";
  std::vector<std::map<std::string, int64_t>> calls;
  for (int64_t n : {1, 2, 3, 4, 7, 8, 9, 15, 17, 1023, 1024, 1025, 2047, 2048, 2049, 4100, 5003}) calls.push_back({{"s0", n}});
  compare(text, calls, {kVector32, kScalar32}, 0);
}

TEST_CASE("rows of a length known only at run time", "[cuda]") {
  std::vector<std::map<std::string, int64_t>> calls;
  for (int64_t n : {1, 3, 31, 32, 33, 64, 65, 127, 128, 129, 256, 500, 1000, 1024, 1025, 2049, 4096}) calls.push_back({{"s0", 3}, {"s1", n}});
  compare(programs::softmax_dynamic_row, calls, {kVector32}, 1e-5);  // by specializations
  CpuProgram cpu(on_device(programs::softmax_dynamic_row, "cpu"));
  const loops::Program program = loops::parse(on_device(programs::softmax_dynamic_row, "cuda:0"));
  CudaProgram general(without_specializations(schedule::test::make_plan(program, gpu_target(), Options())), kVector32);
  for (const auto& symbols : calls) {
    const std::vector<Input> inputs = make_inputs(general.executable->plan(), symbols);
    check_equal(run_on(cpu, inputs), run_on(general, inputs), 1e-5);
  }
}

TEST_CASE("rows of every constant length, all reductions", "[cuda]") {
  for (int n : {1, 2, 5, 8, 30, 33, 64, 100, 129, 1000, 3000, 6000}) {
    for (const char* dtype : {"f32", "bf16", "i32"}) {
      if (n > 200 && std::string_view(dtype) == "i32") continue;
      const bool wide = std::string_view(dtype) == "i32";
      std::string text = R"(program @p on DEVICE (@x: TYPE[3, NUMBER]) {
        output @s: COMPUTE[3]
        output @m: TYPE[3]
        output @l: TYPE[3]
        output @a: i64[3]
        output @b: i64[3]
        output @c: bool[3]
        output @d: COMPUTE[3, NUMBER]
        region @n over i < 3, j < NUMBER {
          %0 = load @x[i, j]
          %1 = cast<COMPUTE>(%0)
          %s = reduce<sum>(%1) over j
          store @s[i] = %s
          %m = reduce<max>(%0) over j
          store @m[i] = %m
          %l = reduce<min>(%0) over j
          store @l[i] = %l
          %a = reduce<argmax>(%0) over j
          store @a[i] = %a
          %b = reduce<argmin>(%0) over j
          store @b[i] = %b
          %z = constant COMPUTE(1)
          %g = gt(%1, %z)
          %any = reduce<any>(%g) over j
          %all = reduce<all>(%g) over j
          %x = ne(%any, %all)
          store @c[i] = %x
          %c1 = sub(%1, %s)
          store @d[i, j] = %c1
        }
        return @s, @m, @l, @a, @b, @c, @d
      })";
      const auto replace = [&text](const std::string& word, const std::string& with) {
        for (size_t at = text.find(word); at != std::string::npos; at = text.find(word)) text.replace(at, word.size(), with);
      };
      replace("TYPE", dtype);
      replace("COMPUTE", wide ? "i32" : "f32");
      replace("NUMBER", std::to_string(n));
      compare(text, {{}}, {kVector32}, 1e-4);
    }
  }
}

TEST_CASE("NaN and ties in rows", "[cuda]") {
  const char* text = R"(program @p on cuda:0 (@x: f32[2, 300]) {
    output @m: f32[2]
    output @a: i64[2]
    region @n over i < 2, j < 300 {
      %0 = load @x[i, j]
      %m = reduce<max>(%0) over j
      store @m[i] = %m
      %a = reduce<argmax>(%0) over j
      store @a[i] = %a
    }
    return @m, @a
  })";
  CudaProgram program(text);
  Numbers values(600, 1.0);
  values[200] = values[77] = values[250] = 3;
  values[300 + 111] = std::nan("");
  values[300 + 222] = std::nan("");
  values[300 + 5] = std::numeric_limits<double>::infinity();
  const std::vector<Numbers> found = program.run({program.tensor(DType::F32, {2, 300}, values)});
  CHECK(found[0][0] == 3);
  CHECK(found[1][0] == 77);
  CHECK(std::isnan(found[0][1]));
  CHECK(found[1][1] == 111);
}

TEST_CASE("rows divided by their own value: the bits of a division", "[cuda]") {
  // Two lengths: groups of lanes, and lengths that groups do not divide.
  for (const int n : {64, 37}) {
    std::string text = R"(program @p on cuda:0 (@x: f32[ROWS, N]) {
      output @q: f32[ROWS, N]
      output @t: bf16[ROWS, N]
      output @u: f32[ROWS, N]
      region @n over i < ROWS, j < N {
        %0 = load @x[i, j]
        %m = reduce<max>(%0) over j
        %q = div(%0, %m)
        store @q[i, j] = %q
        %t = cast<bf16>(%q)
        store @t[i, j] = %t
        %w = cast<f32>(%t)
        %u = add(%w, %0)
        store @u[i, j] = %u
      }
      return @q, @t, @u
    })";
    const std::vector<float> largest = {
        1.0f, 3.0f, 7e-7f, 1.1e6f, 1e-30f, 3e38f, 1e-42f, 0.0f, -0.75f, -1e-35f, 0x1p20f, 0x1p-20f, std::numeric_limits<float>::infinity(), std::nanf("")};
    const auto rows = static_cast<int64_t>(largest.size());
    const auto replace = [&text](const std::string& word, const std::string& with) {
      for (size_t at = text.find(word); at != std::string::npos; at = text.find(word)) text.replace(at, word.size(), with);
    };
    replace("ROWS", std::to_string(rows));
    replace("N]", std::to_string(n) + "]");
    replace("< N", "< " + std::to_string(n));
    Numbers values;
    const std::vector<float> scales = {1.0f, 0x1p-30f, 0x1p-90f, 0.0f, -0.0f, 0x1p-101f, 0x1p-126f, 1e-44f};
    for (int64_t i = 0; i < rows; ++i)
      for (int j = 0; j < n; ++j) {
        const float top = largest[static_cast<size_t>(i)];
        // Whole groups of ordinary dividends, and groups with all sorts of them. Negative maxima: more negative ones.
        const float part = top * (top < 0 ? 1.0f + 0.37f * static_cast<float>(j) : 1.0f / (1.0f + 0.37f * static_cast<float>(j)));
        const float scale = j / 8 % 2 || top < 0 ? 1.0f : scales[static_cast<size_t>(j) % scales.size()];
        values.push_back(j == 5 ? top : part * scale);
      }
    CudaProgram program(text);
    CHECK_THAT(program.source(), mentions(n == 64 ? ".divide_all(" : ".divide"));
    const std::vector<Numbers> found = program.run({program.tensor(DType::F32, {rows, n}, values)});
    for (size_t k = 0; k < values.size(); ++k) {
      const auto x = static_cast<float>(values[k]), m = largest[k / static_cast<size_t>(n)];
      INFO(x << " / " << m);
      const float expected = x / m, quotient = static_cast<float>(found[0][k]);
      if (std::isnan(expected)) {
        CHECK(std::isnan(quotient));
        continue;
      }
      CHECK(std::memcmp(&quotient, &expected, sizeof quotient) == 0);
      const double rounded = Scalar::from_real(DType::BF16, expected).as_real();
      CHECK(found[1][k] == rounded);
      CHECK(static_cast<float>(found[2][k]) == static_cast<float>(rounded) + x);
    }
  }
}

TEST_CASE("quotients of a row's value that a later row loop reads", "[cuda]") {
  // The backward of a softmax that makes its probabilities again: the row loop of the sum ends with the division.
  for (const char* columns : {"70", "64", "37", "1032"}) {
    std::string text = R"(program @p on DEVICE (@e: bf16[7, N], @s: f32[7], @g: bf16[7, N]) {
      output @y: bf16[7, N]
      region @n over i < 7, j < N {
        %0 = load @e[i, j]
        %1 = cast<f32>(%0)
        %2 = exp(%1)
        %3 = load @s[i]
        %p = div(%2, %3)
        %4 = load @g[i, j]
        %5 = cast<f32>(%4)
        %q = mul(%5, %p)
        %z = reduce<sum>(%q) over j
        %6 = mul(%p, %z)
        %7 = sub(%q, %6)
        %y = cast<bf16>(%7)
        store @y[i, j] = %y
      }
      return @y
    })";
    for (size_t at = text.find("N"); at != std::string::npos; at = text.find("N")) text.replace(at, 1, columns);
    compare(text, {{}}, {kVector32, kScalar32}, 1e-2);
  }
}

TEST_CASE("columns: strips that are cut, softmax and Welford across rows", "[cuda]") {
  for (const char* shape : {"40, 100", "300, 37", "17, 8", "5, 1000"}) {
    std::string text = R"(program @p on DEVICE (@x: bf16[SHAPE]) {
      output @y: bf16[SHAPE]
      output @v: f32[COLUMNS]
      region @n over c < COLUMNS, r < ROWS {
        %0 = load @x[r, c]
        %1 = cast<f32>(%0)
        %m = reduce<max>(%1) over r
        %2 = sub(%1, %m)
        %3 = exp(%2)
        %s = reduce<sum>(%3) over r
        %4 = div(%3, %s)
        %5 = cast<bf16>(%4)
        store @y[r, c] = %5
        %w = reduce<welford>(%1) over r
        %w2 = project<1>(%w)
        %k = constant f32(2)
        %o = mul(%w2, %k)
        store @v[c] = %o
      }
      return @y, @v
    })";
    const std::string sizes(shape);
    const size_t comma = sizes.find(", ");
    const auto replace = [&text](const std::string& word, const std::string& with) {
      for (size_t at = text.find(word); at != std::string::npos; at = text.find(word)) text.replace(at, word.size(), with);
    };
    replace("SHAPE", sizes);
    replace("ROWS", sizes.substr(0, comma));
    replace("COLUMNS", sizes.substr(comma + 2));
    compare(text, {{}}, {kVector32, kScalar32}, 1e-2);
  }
}

TEST_CASE("a variance with an infinite element is no number, wherever it lies; one of which only squares overflow is infinite", "[cuda]") {
  CudaProgram program(on_device(R"(program @p on DEVICE (@x: f32[64, 8]) {
    output @v: f32[8]
    region @n over c < 8, r < 64 {
      %x = load @x[r, c]
      %w = reduce<welford>(%x) over r
      %v = project<1>(%w)
      store @v[c] = %v
    }
    return @v
  })",
                                "cuda:0"));
  REQUIRE(program.kernel().mapping.as<plan::Columns>());
  for (const int64_t row : {0, 1, 31, 33, 63}) {
    INFO("row " << row);
    const auto variances = [&](double element) {
      Numbers values(64 * 8, 1);
      for (int64_t c = 0; c < 8; c += 2) values[static_cast<size_t>(row * 8 + c)] = element;
      return program.run({program.tensor(DType::F32, {64, 8}, values)}).front();
    };
    const auto of_infinity = variances(std::numeric_limits<double>::infinity()), of_large = variances(1e30);
    for (size_t c = 0; c < 8; ++c) {
      CHECK(std::isnan(of_infinity[c]) == (c % 2 == 0));
      CHECK(std::isinf(of_large[c]) == (c % 2 == 0));
    }
  }
}

TEST_CASE("a maximum and its sum of exponentials in one row loop over a row that fits no registers", "[cuda]") {
  // The last columns make rows special: by default, all -infinity, one +infinity, one NaN, -infinity but for the end.
  const std::string text = R"(program @p on DEVICE (@x: f32[5, 300007]) {
    output @m: f32[5]
    output @s: f32[5]
    output @y: f32[5, 300007]
    region @n over i < 5, j < 300007 {
      %x = load @x[i, j]
      %m = reduce<max>(%x) over j
      %d = sub(%x, %m)
      %e = exp(%d)
      %s = reduce<sum>(%e) over j
      %q = div(%e, %s)
      store @m[i] = %m
      store @s[i] = %s
      store @y[i, j] = %q
    }
    return @m, @s, @y
  })";
  CpuProgram cpu(on_device(text, "cpu"));
  CudaProgram cuda(on_device(text, "cuda:0"));
  REQUIRE_THAT(cuda.source(), mentions("cxxi_softmax_sum<float> r"));
  constexpr int64_t kLength = 300007;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<Input> inputs = make_inputs(cuda.executable->plan(), {});
  std::vector<double>& x = inputs[0].values;
  std::fill_n(x.begin() + kLength, kLength, -kInfinity);
  x[2 * kLength + 1234] = kInfinity;
  x[3 * kLength + 299999] = std::nan("");
  std::fill_n(x.begin() + 4 * kLength, kLength - 3, -kInfinity);
  const auto expected = run_on(cpu, inputs);
  REQUIRE(std::isnan(expected[1][1]));
  check_equal(expected, run_on(cuda, inputs), 1e-5);
}

TEST_CASE("serial rows: values of each row, and sums across the rows of a part", "[cuda]") {
  struct Case {
    SerialRows rows;
    int shared;  // sums in shared memory
  };
  // Rows of the whole block, of parts of it, of less than a warp; serial rows that end within a step; sums that leave
  // registers, of rows that are no multiple of the block's threads.
  for (const auto& [shape, shared] : {Case{{3, 20, 1024, "bf16"}, 0}, Case{{2, 17, 768, "bf16"}, 0}, Case{{2, 5, 4096, "bf16"}, 0},
                                      Case{{1, 40, 72, "bf16"}, 0}, Case{{2, 16, 520, "f32"}, 0}, Case{{2, 3, 12280, "bf16"}, 1},
                                      Case{{1, 3, 16384, "bf16"}, 2}, Case{{1, 3, 15000, "bf16", false}, 1}, Case{{2, 19, 1032, "bf16", true, true}, 0}}) {
    CpuProgram cpu(on_device(norm_backward(shape, false), "cpu"));
    for (const Variant variant : {kVector32, kScalar32}) {
      CudaProgram cuda(on_device(norm_backward(shape, true), "cuda:0"), variant);
      const plan::Kernel& kernel = cuda.kernel();
      REQUIRE(kernel.mapping.as<plan::SerialRows>());
      CHECK(std::count(kernel.memory_spaces.begin(), kernel.memory_spaces.end(), plan::MemorySpace::Shared) == shared);
      CHECK((plan::launch_shape(kernel).dynamic_shared_bytes > 0) == (shared > 0));
      INFO(cuda.source().substr(cuda.source().find("typedef")));
      const std::vector<Input> inputs = make_inputs(cuda.executable->plan(), {});
      check_equal(run_on(cpu, inputs), run_on(cuda, inputs), 2e-2);
    }
  }
}

TEST_CASE("sums across rows of what a row's kernel computes join its serial rows", "[cuda]") {
  const std::string text = norm_backward_in_regions(2048, 512);
  CpuProgram cpu(on_device(text, "cpu"));
  CudaProgram cuda(schedule::fuse(loops::parse(on_device(text, "cuda:0")), gpu_target(), Options(), nullptr), {}, gpu_target());
  const plan::Plan& plan = cuda.executable->plan();
  REQUIRE(cuda.kernel().mapping.as<plan::SerialRows>());
  CHECK(plan.kernels.size() == 2);  // the serial rows, and the sums of its parts
  CHECK(std::count_if(cuda.kernel().params.begin(), cuda.kernel().params.end(), [](const plan::Param& param) { return param.read; }) == 3);
  const std::vector<Input> inputs = make_inputs(plan, {});
  check_equal(run_on(cpu, inputs), run_on(cuda, inputs), 1e-3);
}

TEST_CASE("states of serial rows of narrow values are wider than these", "[cuda]") {
  const auto text = [](bool serial) {
    return fmt::format(R"(program @p on DEVICE (@x: bf16[2, 32, 512]) {{
    output @y: f32[2, 32]
    output @m: bf16[2, 512]
    region @n over b < 2, {}j < 32, c < 512 {{
      %x = load @x[b, j, c]
      %f = cast<f32>(%x)
      %s = reduce<sum>(%f) over c
      store @y[b, j] = %s
      {}
      %m = reduce<max>(%x) over j
      store @m[b, c] = %m
    }}
    return @y, @m
  }})",
                       serial ? "serial " : "", serial ? "" : "}\n    region @k over b < 2, j < 32, c < 512 {\n      %x = load @x[b, j, c]");
  };
  CpuProgram cpu(on_device(text(false), "cpu"));
  CudaProgram cuda(on_device(text(true), "cuda:0"));
  const auto* rows = cuda.kernel().mapping.as<plan::SerialRows>();
  REQUIRE(rows);
  REQUIRE(rows->rows_per_block > 1);
  INFO(cuda.source().substr(cuda.source().find("typedef")));
  const std::vector<Input> inputs = make_inputs(cuda.executable->plan(), {});
  check_equal(run_on(cpu, inputs), run_on(cuda, inputs), 1e-3);
  // 32-bit states of the elements of all parts, which fit.
  const int states = rows->rows_per_block * rows->items_per_thread * rows->threads_per_row * cuda.kernel().mapping.vector_width;
  CHECK_THAT(cuda.source(), mentions(fmt::format("cxxi_shared[{}]", states * 4 / 16)));
}

TEST_CASE("an index out of bounds is reported and nothing is touched", "[cuda]") {
  CudaProgram program(on_device(programs::embedding, "cuda:0"));
  const Numbers table = some_values(50 * 64, 1);
  const auto call = [&](Numbers indices) {
    const auto n = static_cast<int64_t>(indices.size());
    return program.run({program.tensor(DType::F32, {50, 64}, table), program.tensor(DType::I64, {n}, indices)});
  };
  CHECK(call({3, 49, 0})[0][64 + 1] == static_cast<float>(table[49 * 64 + 1]));
  CHECK_THROWS_WITH(call({3, 1e15, 0}), mentions("index 1000000000000000 outside 50"));
  CHECK_THROWS_WITH(call({3, -1, 0}), mentions("index -1 outside 50"));
}
