// Tiles: texts of the CUDA target under emulation, against the CPU target's compiled kernels of the same program.
#include <map>
#include <string>
#include <vector>

#include "kernels/compare.h"
#include "kernels/cpu_program.h"
#include "kernels/cuda_program.h"
#include "unit/catch.h"
#include "unit/replaced.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;
using plan::Variant;

namespace {

struct TileCase {
  int rows, columns;
  const char* dtype;
  int vector_width;
};

std::string filled(std::string text, const std::map<std::string, std::string>& values) {
  for (const auto& [word, value] : values) text = replaced(std::move(text), word, value);
  return text;
}

// T: the elements' dtype; MAXIMUM: %z of loads %a and %b.
std::string of_dtype(const std::string& text, const std::string& dtype) {
  const bool computes = dtype == "f32" || dtype == "f64";
  const std::string maximum = computes ? "%z = maximum(%a, %b)" : "%c = cast<f32>(%a)\n%d = cast<f32>(%b)\n%m = maximum(%c, %d)\n%z = cast<T>(%m)";
  return filled(filled(text, {{"MAXIMUM", maximum}}), {{"T[", dtype + "["}, {"<T>", "<" + dtype + ">"}});
}

// One region for each case: a maximum with what is transposed.
std::string program_of(const std::vector<TileCase>& cases) {
  std::string inputs, buffers, regions, outputs;
  for (size_t k = 0; k < cases.size(); ++k) {
    const TileCase& c = cases[k];
    const auto add = [&](const std::string& text) {
      return of_dtype(filled(text, {{"ROWS", std::to_string(c.rows)}, {"COLUMNS", std::to_string(c.columns)}, {"NUMBER", std::to_string(k)}}), c.dtype);
    };
    inputs += add(k ? ", " : "") + add("@xNUMBER: T[ROWS, COLUMNS], @yNUMBER: T[COLUMNS, ROWS]");
    buffers += add("  output @zNUMBER: T[COLUMNS, ROWS]\n");
    regions += add(R"(  region @nNUMBER over i < COLUMNS, j < ROWS {
    %a = load @xNUMBER[j, i]
    %b = load @yNUMBER[i, j]
    MAXIMUM
    store @zNUMBER[i, j] = %z
  }
)");
    outputs += add(k ? ", @zNUMBER" : "@zNUMBER");
  }
  return fmt::format("program @p on DEVICE ({}) {{\n{}{}  return {}\n}}\n", inputs, buffers, regions, outputs);
}

// With one multiprocessor tiles are large, with many small.
struct Configuration {
  int multiprocessors;
  Variant variant;
};

void compare_tiles(const std::string& text, const std::vector<std::map<std::string, int64_t>>& calls, const std::vector<int>& vector_widths,
                   const std::vector<Configuration>& configurations) {
  CpuProgram cpu(on_device(text, "cpu"));
  for (const Configuration& configuration : configurations) {
    CudaProgram cuda(on_device(text, "cuda:0"), configuration.variant, cuda_target("sm_90a", configuration.multiprocessors));
    INFO(cuda.source().substr(cuda.source().find("typedef")));
    for (size_t k = 0; k < vector_widths.size(); ++k) {
      REQUIRE(cuda.kernel(k).mapping.as<plan::Tiles>());
      CHECK(cuda.kernel(k).mapping.vector_width == vector_widths[k]);
    }
    for (const auto& symbols : calls) {
      const std::vector<Input> inputs = make_inputs(cuda.executable->plan(), symbols);
      check_equal(run_on(cpu, inputs), run_on(cuda, inputs), 0);
    }
  }
}

}  // namespace

TEST_CASE("tiles: aligned and odd sizes, edges, groups of every width", "[cuda]") {
  const std::vector<TileCase> cases = {{64, 128, "bf16", 4}, {68, 132, "bf16", 4}, {66, 130, "bf16", 2}, {65, 131, "bf16", 1}, {64, 129, "bf16", 1},
                                       {16, 40, "bf16", 4},  {17, 200, "bf16", 1}, {30, 50, "bf16", 2},  {100, 66, "f32", 2},  {133, 127, "f32", 1},
                                       {72, 136, "u8", 4},   {73, 135, "u8", 1},   {20, 72, "f64", 1},   {129, 65, "f64", 1}};
  std::vector<int> vector_widths;
  for (const TileCase& c : cases) vector_widths.push_back(c.vector_width);
  compare_tiles(program_of(cases), {{}}, vector_widths, {{1, kVector32}, {1, kScalar32}});
}

TEST_CASE("tiles: two dtypes, two results, more operands than shared memory holds", "[cuda]") {
  std::string inputs, body;
  for (int k = 0; k < 7; ++k) {
    inputs += fmt::format(", @f{}: f64[40, 70]", k);
    body += fmt::format("    %l{0} = load @f{0}[j, i]\n", k);
    body += k ? fmt::format("    %s{} = maximum(%s{}, %l{})\n", k, k - 1, k) : "    %s0 = neg(%l0)\n";
  }
  compare_tiles(fmt::format(R"(program @p on DEVICE (@x: f32[68, 132], @y: bf16[68, 132], @w: f32[132]{}) {{
      output @z: f32[132, 68]
      output @t: bf16[132, 68]
      output @u: f64[70, 40]
      region @n over i < 132, j < 68 {{
        %0 = load @x[j, i]
        %1 = load @y[j, i]
        %2 = cast<f32>(%1)
        %3 = load @w[i]
        %4 = sub(%0, %2)
        %5 = minimum(%4, %3)
        store @z[i, j] = %5
        store @t[i, j] = %1
      }}
      region @m over i < 70, j < 40 {{
{}        store @u[i, j] = %s6
      }}
      return @z, @t, @u
    }})",
                            inputs, body),
                {{}}, {2, 1}, {{1, kVector32}});
}

TEST_CASE("tiles: a batch of transposes", "[cuda]") {
  compare_tiles(of_dtype(R"(program @p on DEVICE (@x: T[3, 68, 132], @w: T[132, 68], @y: T[3, 67, 71]) {
      output @z: T[3, 132, 68]
      output @t: T[3, 71, 67]
      region @n over b < 3, i < 132, j < 68 {
        %a = load @x[b, j, i]
        %b = load @w[i, j]
        MAXIMUM
        store @z[b, i, j] = %z
      }
      region @m over b < 3, i < 71, j < 67 {
        %0 = load @y[b, j, i]
        store @t[b, i, j] = %0
      }
      return @z, @t
    })",
                         "bf16"),
                {{}}, {4, 1}, {{1, kVector32}, {132, kVector64}});
}

TEST_CASE("tiles: sizes known only at run time", "[cuda]") {
  compare_tiles(of_dtype(R"(program @p on DEVICE (@x: T[s0, s1], @y: T[s1, s0]) where 1 <= s0 <= 5000, 1 <= s1 <= 5000 {
      output @z: T[s1, s0]
      region @n over i < s1, j < s0 {
        %a = load @x[j, i]
        %b = load @y[i, j]
        MAXIMUM
        store @z[i, j] = %z
      }
      return @z
    })",
                         "bf16"),
                {{{"s0", 1}, {"s1", 1}},
                 {{"s0", 1}, {"s1", 100}},
                 {{"s0", 64}, {"s1", 128}},
                 {{"s0", 63}, {"s1", 65}},
                 {{"s0", 129}, {"s1", 7}},
                 {{"s0", 96}, {"s1", 40}}},
                {1}, {{1, kVector32}, {132, kVector64}});
}
