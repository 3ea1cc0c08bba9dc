// The host's kernels_templates/intrinsics/cuda/atomics.cuh.
template <class T>
T cxxi_compare_and_swap(T* address, T expected, T value) {
  __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}
template <class T>
constexpr bool cxxi_adds_in_memory = false;
template <class T>
void cxxi_add_in_memory(T*, T);  // of no type
