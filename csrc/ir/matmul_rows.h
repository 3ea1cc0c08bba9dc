// What rows whose length is no multiple of 16 bytes cost the vendor's library in a product of 16-bit floats.
#pragma once

#include <cstdint>

namespace cxxinductor {

inline constexpr int matmul_row_bytes = 16;

// How much longer a product takes than with such rows, by the bytes that the length of a row is a multiple of: cuBLAS on an
// H200, 8192 x 768 x 50257 and its backward (benchmarks/matmul_padding.py).
constexpr double unaligned_slowdown(int64_t bytes) {
  return bytes % 16 == 0 ? 1 : bytes % 8 == 0 ? 1.2 : bytes % 4 == 0 ? 2.7 : 7;
}

}  // namespace cxxinductor
