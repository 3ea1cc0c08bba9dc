// Asynchronous copies from global to shared memory, of sm_80 and later.

// 16 bytes: the first `bytes` from `from`, zeros behind them. Both addresses are multiples of 16. The bytes may be read at any time from
// here on, and are there for this thread after the wait for their group, for others after a barrier behind it.
CXXI_FN void cxxi_copy_async(void* to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned int)(__cvta_generic_to_shared(to))), "l"(from), "r"(bytes)
               : "memory");
}
// The copies of this thread since the last call become a group, which may be empty.
CXXI_FN void cxxi_commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most `Pending` of this thread's last groups are under way.
template <int Pending>
CXXI_FN void cxxi_wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
