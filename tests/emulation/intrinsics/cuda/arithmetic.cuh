// The host's kernels_templates/intrinsics/cuda/arithmetic.cuh.
#include "host_simt/intrinsics/cuda/arithmetic.cuh"
