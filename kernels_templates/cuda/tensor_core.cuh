// What products on tensor cores of sm_80 and later need. Follows group.cuh in a unit.
#include "intrinsics/cuda/copies.cuh"
#include "intrinsics/cuda/matrices.cuh"
