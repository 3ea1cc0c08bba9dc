// The host's kernels_templates/intrinsics/cuda/language.cuh.
#define CXXI_FN inline
#define CXXI_DYNAMIC_SHARED(name) unsigned char* const name = host_simt::block->shared()
