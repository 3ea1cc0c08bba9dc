// Tensor cores, shared-memory matrices and asynchronous copies of sm_80 and later. Follows group.cuh in a unit.
//
// Fragments are those of mma.m16n8k16: lane l holds, of the 16 x 16 left factor, rows l / 4 and l / 4 + 8, columns
// 2 * (l % 4) + {0, 1, 8, 9}; of the 16 x 8 right factor, column l / 4, rows as those columns; of the 16 x 8 sums, rows
// l / 4 and l / 4 + 8, columns 2 * (l % 4) + {0, 1}.
#ifndef CXXI_HOST_EMULATION
CXXI_FN unsigned int cxxi_shared_address(const void* p) { return (unsigned int)(__cvta_generic_to_shared(p)); }
// 16 bytes to shared memory: the first `bytes` from `from`, zeros behind them. They are there after the wait.
CXXI_FN void cxxi_copy_async(void* to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(cxxi_shared_address(to)), "l"(from), "r"(bytes)
               : "memory");
}
CXXI_FN void cxxi_commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most `Pending` of this thread's last groups of copies are under way.
template <int Pending>
CXXI_FN void cxxi_wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
// Four 8 x 8 matrices: lane l gives the address of row l % 8 of matrix l / 8, and gets of each matrix row l / 4, columns
// 2 * (l % 4) + {0, 1}; transposed: of its transpose.
CXXI_FN void cxxi_load_matrices(unsigned int (&words)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(cxxi_shared_address(row)));
}
CXXI_FN void cxxi_load_matrices_transposed(unsigned int (&words)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(cxxi_shared_address(row)));
}
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
#endif
