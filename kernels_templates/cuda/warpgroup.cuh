// What products by warp groups need. Follows tensor_core.cuh in a unit.
#include "intrinsics/cuda/warpgroups.cuh"
