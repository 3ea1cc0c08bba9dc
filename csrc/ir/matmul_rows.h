// What rows whose length is no multiple of 16 bytes cost the vendor's library in a product of 16-bit floats.
#pragma once

#include <cstdint>

namespace cxxinductor {

inline constexpr int matmul_row_bytes = 16;

// How much longer a product takes than with such rows, by the bytes that the length of a row is a multiple of: cuBLAS on an
// H200, 8192 x 768 x 50257 and its backward (benchmarks/matmul_padding.py).
constexpr double unaligned_slowdown(int64_t bytes) { return bytes % 16 == 0 ? 1 : bytes % 8 == 0 ? 1.2 : bytes % 4 == 0 ? 2.7 : 7; }

// Where rows of the result are unaligned (8192 x 768 x 50257 to 50260).
constexpr double unaligned_result_slowdown(int64_t bytes) { return bytes % 16 == 0 ? 1 : bytes % 4 == 0 ? 2.7 : 7; }

// Where the rows of the result alone are unaligned, those that start at the same distance from a boundary make a product whose rows are
// aligned, but for a few columns at both ends: at most ten calls in place of one (torch_bridge/split_product.h). What they take beside an
// aligned product: on an H200 0.98 ms for 8192 x 768 x 50257 (benchmarks/matmul_template.py) and 0.89 ms for 50264 columns.
inline constexpr double split_product_slowdown = 1.08, split_product_seconds = 60e-6;

// operations: of the whole product. row_bytes: what the length of a row of the result and the way to the next one are multiples of.
constexpr bool is_split_worth(double operations, int64_t row_bytes) {
  constexpr double operations_per_second = 650e12;  // dense, on an H200; others lose less by the launches
  return operations * (unaligned_result_slowdown(row_bytes) - split_product_slowdown) > split_product_seconds * operations_per_second;
}

}  // namespace cxxinductor
