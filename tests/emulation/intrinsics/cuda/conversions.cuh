// The host's kernels_templates/intrinsics/cuda/conversions.cuh.
#include "host_simt/intrinsics/cuda/conversions.cuh"
