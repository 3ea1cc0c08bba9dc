// A row per intrinsic of kernels_templates/intrinsics/cuda: a few lines of CUDA text that call it, and what they are given. The same text runs on a
// GPU and, with the host version, under emulation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/templates.h"

namespace cxxinductor::tests {

enum class Element { U16, U32, U64, F16, BF16, F32, F64 };

// How elements of an operand are drawn. Bits: half of them any bits at all, the others zeros, ones, infinities, NaNs, denormals and what lies at
// the ends of formats, in all pairs. Reals: low <= x <= high. Integers: the same, as whole numbers of the element's type.
struct Samples {
  enum class Kind { Bits, Reals, Integers } kind = Kind::Bits;
  double low = 0, high = 0;
};

// How results of the GPU and of the host are compared: by their bits, with all NaNs alike, or with an error that the intrinsic states.
struct Agreement {
  enum class Kind { Bits, BitsOrNan, Ulps, Absolute } kind = Kind::Bits;
  double bound = 0;
};

struct Operand {
  Element element = Element::U32;
  int per_thread = 1;
  Samples samples;
};

// The kernel: `a`, `b` and `r` point to a block's operands and results, `i` is the thread's number in its block.
struct IntrinsicRow {
  std::string names;  // of the intrinsics, with spaces between them
  std::string label;  // what distinguishes rows of the same names
  std::string body;
  Operand a, b;
  Element result = Element::U32;
  int results_per_thread = 1;
  Agreement agreement;
  int threads = 256, blocks = 4;
  int shared_bytes = 0;
  bool is_sm_90a = false;  // or sm_80 and later
};

const std::vector<IntrinsicRow>& intrinsic_rows();
int bytes_of(Element element);
// Bytes of all blocks' operands, the same for the same seed.
std::vector<unsigned char> draw_operand(const IntrinsicRow& row, const Operand& operand, uint64_t seed);
// "" or how a result of the GPU differs, in a few words.
std::string disagreement(const IntrinsicRow& row, const unsigned char* gpu, const unsigned char* host);

// A unit with the rows' kernels, named row_<number>: those of sm_80 alone, or all.
std::string rows_text(bool is_sm_90a, codegen::Templates templates);
std::string kernel_name(size_t row);

}  // namespace cxxinductor::tests
