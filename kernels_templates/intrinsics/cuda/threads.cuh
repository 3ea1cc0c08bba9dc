// Barriers, and exchange between the lanes of a warp. All lanes of the warp must be at the same call.

// Waits for all threads of the block. What they stored before is visible to all behind it.
CXXI_FN void cxxi_sync_block() { __syncthreads(); }
// The same for the warp.
CXXI_FN void cxxi_sync_warp() { __syncwarp(); }
// Stores of this thread before it are visible to the host and to other devices before its stores behind it.
CXXI_FN void cxxi_fence_system() { __threadfence_system(); }
// What lane `own lane ^ mask` passes. Integers of less than 32 bits, and bool, travel as int.
template <class T>
CXXI_FN T cxxi_from_lane(T v, int mask) {
  return T(__shfl_xor_sync(0xffffffffu, int(v), mask));
}
CXXI_FN unsigned int cxxi_from_lane(unsigned int v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
CXXI_FN float cxxi_from_lane(float v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
CXXI_FN double cxxi_from_lane(double v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
CXXI_FN long long cxxi_from_lane(long long v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
CXXI_FN unsigned long long cxxi_from_lane(unsigned long long v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
// What lane `lane` passes; 0 <= lane < 32.
template <class T>
CXXI_FN T cxxi_of_lane(T v, int lane) {
  return __shfl_sync(0xffffffffu, v, lane);
}
// A value that all lanes hold, told to the compiler: arithmetic on it leaves the vector units. (The bitwise or of all lanes' values.)
CXXI_FN long long cxxi_uniform(long long value) {
  unsigned int low, high;
  asm("redux.sync.or.b32 %0, %1, 0xffffffff;" : "=r"(low) : "r"((unsigned int)(value)));
  asm("redux.sync.or.b32 %0, %1, 0xffffffff;" : "=r"(high) : "r"((unsigned int)((unsigned long long)(value) >> 32)));
  return (long long)(((unsigned long long)(high) << 32) | low);
}
