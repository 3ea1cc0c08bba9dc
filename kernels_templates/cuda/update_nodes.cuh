// A kernel of a CUDA graph that writes addresses into the arguments of the kernels behind it (csrc/targets/cuda/node_updates.h).
#include "intrinsics/cuda/language.cuh"
#include "intrinsics/cuda/threads.cuh"

// A function of the driver, as printf is one: it is found when the machine code is loaded.
extern "C" __device__ int cudaGraphKernelNodeSetParam(void* node, unsigned long long offset, const void* value, unsigned long long size);

// csrc/targets/cuda/node_update_table.h has the same struct for the host.
struct UpdateTable {
  static constexpr unsigned words_at_most = 1300, ranges_at_most = 512;
  const volatile unsigned long long* begins;  // by replay modulo `slots`, then by range: in the host's memory
  volatile unsigned* done;                    // replays whose addresses have been read: in the host's memory
  unsigned ring, slots, ranges, words;
  bool is_last;                               // of the replay's tables
  void* nodes[words_at_most];
  long long offsets[words_at_most];           // from the beginning of the range
  unsigned short arguments[words_at_most];    // bytes from the beginning of the kernel's arguments
  unsigned short range_of[words_at_most];
};

static_assert(sizeof(UpdateTable) == 26040, "the host's struct is as large");

__device__ unsigned replays[4096];  // by ring: NodeUpdateKernels::most_rings

extern "C" __global__ void update_nodes(const __grid_constant__ UpdateTable table) {
  __shared__ unsigned long long begins[UpdateTable::ranges_at_most];
  const unsigned replay = replays[table.ring];
  const auto* const slot = table.begins + replay % table.slots * table.ranges;
  for (unsigned i = threadIdx.x; i < table.ranges; i += blockDim.x) begins[i] = slot[i];
  cxxi_sync_block();
  if (table.is_last && threadIdx.x == 0) {
    replays[table.ring] = replay + 1;
    cxxi_fence_system();  // once the host reads `done`, another graph may have the ring
    *table.done = replay + 1;
  }
  for (unsigned i = threadIdx.x; i < table.words; i += blockDim.x) {
    const unsigned long long value = begins[table.range_of[i]] + table.offsets[i];
    cudaGraphKernelNodeSetParam(table.nodes[i], table.arguments[i], &value, sizeof value);
  }
}
