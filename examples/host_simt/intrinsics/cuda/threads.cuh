// The host's kernels_templates/intrinsics/cuda/threads.cuh.
CXXI_FN void cxxi_sync_block() { host_simt::block->wait_for_block(); }
CXXI_FN void cxxi_sync_warp() { host_simt::block->wait_for_warp(); }
CXXI_FN void cxxi_fence_system() {}
template <class T>
T cxxi_from_lane(T value, int mask) {
  return host_simt::shuffle(value, host_simt::block->lane() ^ unsigned(mask));
}
template <class T>
T cxxi_of_lane(T value, int lane) {
  return host_simt::shuffle(value, unsigned(lane));
}
CXXI_FN long long cxxi_uniform(long long value) { return value; }
