// The host's kernels_templates/intrinsics/cuda/language.cuh.
#define CXXI_FN inline
// All that a block may have.
struct alignas(1024) cxxi_shared_memory {
  unsigned char bytes[232448];
};
#define CXXI_DYNAMIC_SHARED(name)               \
  __shared__ cxxi_shared_memory name##_storage; \
  unsigned char* const name = name##_storage.bytes
