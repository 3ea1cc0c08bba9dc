// The host's kernels_templates/intrinsics/cuda/registers.cuh.
#include "host_simt/intrinsics/cuda/registers.cuh"
