// The host's kernels_templates/intrinsics/cuda/matrices.cuh.
template <bool Transposed>
void cxxi_gather_matrices(const char* call, unsigned int (&words)[4], const void* row) {
  if (uintptr_t(row) % 16 != 0) cxxi_emulation::block->fail(call, "an address that is not a multiple of 16");
  const auto& rows = cxxi_emulation::block->exchange(call, {uintptr_t(row)});
  const auto element = [&](unsigned int matrix, unsigned int r, unsigned int c) {
    return (unsigned int)(reinterpret_cast<const unsigned short*>(rows[matrix * 8 + r][0])[c]);
  };
  const unsigned int lane = threadIdx.x % 32, r = lane / 4, c = lane % 4 * 2;
  for (unsigned int i = 0; i < 4; ++i)
    words[i] = Transposed ? element(i, c, r) | element(i, c + 1, r) << 16 : element(i, r, c) | element(i, r, c + 1) << 16;
}
CXXI_FN void cxxi_load_matrices(unsigned int (&words)[4], const void* row) {
  cxxi_gather_matrices<false>("cxxi_load_matrices", words, row);
}
CXXI_FN void cxxi_load_matrices_transposed(unsigned int (&words)[4], const void* row) {
  cxxi_gather_matrices<true>("cxxi_load_matrices_transposed", words, row);
}
CXXI_FN float cxxi_factor_value(cxxi_f16 factor) { return cxxi_to_float(factor); }
CXXI_FN float cxxi_factor_value(cxxi_bf16 factor) { return cxxi_bits_float((unsigned int)(factor.bits) << 16); }
// One sum after the other.
template <class T>
void cxxi_multiply_add(float (&sums)[4], const unsigned int (&left)[4], unsigned int right_low, unsigned int right_high, T) {
  const auto& lanes = cxxi_emulation::block->exchange(
      "cxxi_multiply_add", {left[0], left[1], left[2], left[3], right_low, right_high});
  const auto half = [](uint64_t word, unsigned int which) {
    return cxxi_factor_value(T{(unsigned short)(word >> 16 * which)});
  };
  const unsigned int lane = threadIdx.x % 32;
  for (unsigned int e = 0; e < 4; ++e) {
    const unsigned int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
    for (unsigned int k = 0; k < 16; ++k) {
      const unsigned int holder = k % 8 / 2, upper = k / 8;
      sums[e] += half(lanes[row % 8 * 4 + holder][row / 8 + 2 * upper], k % 2) * half(lanes[column * 4 + holder][4 + upper], k % 2);
    }
  }
}
