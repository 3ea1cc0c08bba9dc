// The host's kernels_templates/intrinsics/cuda/registers.cuh, for tests/emulation too.
CXXI_FN void cxxi_hide_origin(unsigned int&) {}
