// The host's kernels_templates/intrinsics/cuda/atomics.cuh. Another thread may come first at each of them.
template <class T>
__attribute__((no_sanitize("kernel-address"))) T cxxi_compare_and_swap(T* address, T expected, T value) {
  cxxi_emulation::block->may_switch();
  const T old = *address;
  if (old == expected) *address = value;
  return old;
}

template <class T>
constexpr bool cxxi_adds_in_memory = false;
// Denormals of f32 count as zeros of the same sign.
template <class T>
T cxxi_without_denormals(T value) {
  return value;
}
CXXI_FN float cxxi_without_denormals(float value) {
  return std::fabs(value) < 1.17549435e-38f ? std::copysign(0.0f, value) : value;
}
#define CXXI_ADD_IN_MEMORY(type, sum)                                                                      \
  template <>                                                                                              \
  constexpr bool cxxi_adds_in_memory<type> = true;                                                         \
  __attribute__((no_sanitize("kernel-address"))) CXXI_FN void cxxi_add_in_memory(type* address, type value) { \
    cxxi_emulation::block->may_switch();                                                        \
    const type old = *address;                                                                             \
    *address = sum;                                                                                        \
  }
CXXI_ADD_IN_MEMORY(float, cxxi_without_denormals(cxxi_without_denormals(old) + cxxi_without_denormals(value)))
CXXI_ADD_IN_MEMORY(double, old + value)
CXXI_ADD_IN_MEMORY(int, (int)((unsigned int)(old) + (unsigned int)(value)))
CXXI_ADD_IN_MEMORY(unsigned int, old + value)
CXXI_ADD_IN_MEMORY(long long, (long long)((unsigned long long)(old) + (unsigned long long)(value)))
CXXI_ADD_IN_MEMORY(unsigned long long, old + value)
// Sums of two 16-bit floats are exact in double, and rounding to float on the way to f16 or bf16 changes nothing.
CXXI_ADD_IN_MEMORY(cxxi_f16, cxxi_to_f16(cxxi_to_float(old) + cxxi_to_float(value)))
CXXI_ADD_IN_MEMORY(cxxi_bf16, cxxi_to_bf16(cxxi_bits_float((unsigned int)(old.bits) << 16) + cxxi_bits_float((unsigned int)(value.bits) << 16)))
#undef CXXI_ADD_IN_MEMORY
