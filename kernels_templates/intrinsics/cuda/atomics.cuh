// Reading and writing an element in one step, seen by all threads of the device. Needs the storage types cxxi_bf16 and cxxi_f16.

// *address = value if it equals `expected`. Returns what was there. Relaxed: orders nothing else. T: int, unsigned int, unsigned long long.
template <class T>
CXXI_FN T cxxi_compare_and_swap(T* address, T expected, T value) {
  return atomicCAS(address, expected, value);
}

// *address += value in global memory, in the memory system: no thread waits for it. Integers wrap. Floats round to nearest, ties to even.
// f32 takes and leaves zeros of the same sign for denormals; the other formats keep them.
template <class T>
constexpr bool cxxi_adds_in_memory = false;  // whether there is such a function for the type
#define CXXI_ADD_IN_MEMORY(type, as)                                                         \
  template <>                                                                                \
  constexpr bool cxxi_adds_in_memory<type> = true;                                           \
  CXXI_FN void cxxi_add_in_memory(type* address, type value) { atomicAdd((as*)(address), (as)(value)); }
CXXI_ADD_IN_MEMORY(float, float)
CXXI_ADD_IN_MEMORY(double, double)
CXXI_ADD_IN_MEMORY(int, int)
CXXI_ADD_IN_MEMORY(unsigned int, unsigned int)
CXXI_ADD_IN_MEMORY(long long, unsigned long long)
CXXI_ADD_IN_MEMORY(unsigned long long, unsigned long long)
#undef CXXI_ADD_IN_MEMORY
template <>
constexpr bool cxxi_adds_in_memory<cxxi_f16> = true;
CXXI_FN void cxxi_add_in_memory(cxxi_f16* address, cxxi_f16 value) {
  asm volatile("red.global.add.noftz.f16 [%0], %1;" ::"l"(__cvta_generic_to_global(address)), "h"(value.bits) : "memory");
}
#if __CUDA_ARCH__ >= 900
template <>
constexpr bool cxxi_adds_in_memory<cxxi_bf16> = true;
CXXI_FN void cxxi_add_in_memory(cxxi_bf16* address, cxxi_bf16 value) {
  asm volatile("red.global.add.noftz.bf16 [%0], %1;" ::"l"(__cvta_generic_to_global(address)), "h"(value.bits) : "memory");
}
#endif
