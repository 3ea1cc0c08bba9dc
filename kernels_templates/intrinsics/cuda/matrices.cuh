// Matrices of 16-bit elements in the registers of a warp, of sm_80 and later. All lanes of the warp must be at the same call.

// Four 8 x 8 matrices from shared memory: lane l gives the address, a multiple of 16, of row l % 8 of matrix l / 8, and gets as word i the
// elements of matrix i in row l / 4, columns 2 * (l % 4) (low half) and the next; transposed: of its transpose.
CXXI_FN void cxxi_load_matrices(unsigned int (&words)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"((unsigned int)(__cvta_generic_to_shared(row))));
}
CXXI_FN void cxxi_load_matrices_transposed(unsigned int (&words)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"((unsigned int)(__cvta_generic_to_shared(row))));
}
// sums += left * right, of 16 x 16 by 16 x 8 elements. Lane l holds, of left, rows l / 4 and l / 4 + 8, columns 2 * (l % 4) + {0, 1, 8, 9}:
// word i has row l / 4 + i % 2 * 8, columns from 2 * (l % 4) + i / 2 * 8 on; of right, column l / 4, rows 2 * (l % 4) + {0, 1} (low) and
// those + 8 (high); of sums, rows l / 4 and l / 4 + 8, columns 2 * (l % 4) + {0, 1}, row by row. Products are exact; the order and rounding of
// their sums is the hardware's.
CXXI_FN void cxxi_multiply_add(float (&sums)[4], const unsigned int (&left)[4], unsigned int right_low,
                               unsigned int right_high, cxxi_bf16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right_low), "r"(right_high));
}
CXXI_FN void cxxi_multiply_add(float (&sums)[4], const unsigned int (&left)[4], unsigned int right_low,
                               unsigned int right_high, cxxi_f16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right_low), "r"(right_high));
}
