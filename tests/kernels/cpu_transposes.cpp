// The Tiles mapping of the CPU target: transposing loads of every width, whole and cut tiles, vectors and tails.
#include <algorithm>
#include <array>

#include "kernels/cpu_program.h"
#include "unit/catch.h"
#include "unit/replaced.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;

namespace {

// Small whole numbers: exact in every dtype.
Numbers some_wholes(size_t count, uint32_t seed, uint32_t limit) {
  Numbers numbers;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    numbers.push_back(static_cast<double>((seed >> 16) % limit));
  }
  return numbers;
}

size_t count_staged(const plan::Kernel& kernel) {
  return static_cast<size_t>(std::count(kernel.access.begin(), kernel.access.end(), plan::AccessKind::Staged));
}

// Sizes around blocks (16), tiles (16 to 64) and vectors (4 to 64 lanes).
constexpr std::array<std::pair<size_t, size_t>, 11> matrix_sizes = {
    {{1, 1}, {3, 70}, {70, 3}, {15, 17}, {16, 16}, {33, 31}, {64, 64}, {65, 128}, {100, 129}, {130, 63}, {257, 40}}};

}  // namespace

TEST_CASE("transposed loads of every width go through tiles", "[cpu]") {
  const std::string text = R"(program @p on cpu (@x: $T[s1, s0], @y: $T[s0, s1]) where 0 <= s0 <= 5000, 0 <= s1 <= 5000 {
    output @z: $T[s0, s1]
    output @w: $T[s0, s1]
    region @n over i < s0, j < s1 {
      %x = load @x[j, i]
      %y = load @y[i, j]
      %a = maximum(%x, %y)
      store @z[i, j] = %a
      store @w[i, j] = %x
    }
    return @z, @w
  })";
  for (const Target& target : {machine_target(), narrow_target()}) {
    for (const char* dtype : {"f32", "f64", "i8", "i16", "bool"}) {
      const DType type = *find_dtype(dtype);
      INFO(dtype << " on " << target.arch);
      CpuProgram program(replaced(text, "$T", dtype), target);
      REQUIRE(program.kernel().mapping.as<plan::CpuTiles>());
      CHECK(tile_size(program.kernel().mapping) * byte_size(type) >= 64);  // whole cache lines
      CHECK(count_staged(program.kernel()) == 1);
      for (const auto& [n, m] : matrix_sizes) {
        const uint32_t limit = type == DType::Bool ? 2 : 100;
        const Numbers x = some_wholes(n * m, 1, limit), y = some_wholes(n * m, 2, limit);
        Numbers larger, transposed;
        for (size_t i = 0; i < n; ++i) {
          for (size_t j = 0; j < m; ++j) {
            transposed.push_back(x[j * n + i]);
            larger.push_back(std::max(x[j * n + i], y[i * m + j]));
          }
        }
        const auto rows = static_cast<int64_t>(n), columns = static_cast<int64_t>(m);
        const std::vector<Numbers> found = program.run({program.tensor(type, {columns, rows}, x), program.tensor(type, {rows, columns}, y)});
        INFO(n << " x " << m);
        CHECK(found[0] == larger);
        CHECK(found[1] == transposed);
      }
    }
  }
}

TEST_CASE("a batch of transposes with operands of several widths, slices and a mask", "[cpu]") {
  // Rows of @x are longer than what is read of them; @m is transposed too, @r does not vary along the tile.
  CpuProgram program(R"(program @p on cpu (@x: bf16[3, s1, 200], @m: bool[3, s1, s0], @r: f32[3, s0], @o: f16[3, s0, s1])
      where 1 <= s0 <= 150, 1 <= s1 <= 5000 {
    output @z: f32[3, s0, s1]
    region @n over b < 3, i < s0, j < s1 {
      %x = load @x[b, j, i + 40]
      %x1 = cast<f32>(%x)
      %m = load @m[b, j, i]
      %r = load @r[b, i]
      %o = load @o[b, i, j]
      %o1 = cast<f32>(%o)
      %w = where(%m, %x1, %r)
      %a = add(%w, %o1)
      store @z[b, i, j] = %a
    }
    return @z
  })");
  REQUIRE(program.kernel().mapping.as<plan::CpuTiles>());
  CHECK(count_staged(program.kernel()) == 2);
  for (const auto& [n, m] : matrix_sizes) {
    if (n > 150) continue;
    const Numbers x = some_wholes(3 * m * 200, 1, 100), mask = some_wholes(3 * n * m, 2, 2), r = some_wholes(3 * n, 3, 100), o = some_wholes(3 * n * m, 4, 100);
    Numbers expected;
    for (size_t b = 0; b < 3; ++b) {
      for (size_t i = 0; i < n; ++i) {
        for (size_t j = 0; j < m; ++j) {
          const bool chosen = mask[(b * m + j) * n + i] != 0;
          expected.push_back((chosen ? x[(b * m + j) * 200 + i + 40] : r[b * n + i]) + o[(b * n + i) * m + j]);
        }
      }
    }
    const auto rows = static_cast<int64_t>(n), columns = static_cast<int64_t>(m);
    INFO(n << " x " << m);
    CHECK(program.run({program.tensor(DType::BF16, {3, columns, 200}, x), program.tensor(DType::Bool, {3, columns, rows}, mask),
                       program.tensor(DType::F32, {3, rows}, r), program.tensor(DType::F16, {3, rows, columns}, o)})[0] == expected);
  }
}
