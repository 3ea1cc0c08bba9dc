// The host's kernels_templates/intrinsics/cuda/threads.cuh.
CXXI_FN void cxxi_sync_block() { cxxi_emulation::block->wait_block(); }
CXXI_FN void cxxi_sync_warp() { cxxi_emulation::block->wait_warp("cxxi_sync_warp"); }
CXXI_FN void cxxi_fence_system() {}
template <class T>
CXXI_FN T cxxi_from_lane(T v, int mask) {
  uint64_t bits = 0;
  std::memcpy(&bits, &v, sizeof v);
  const auto& lanes = cxxi_emulation::block->exchange("cxxi_from_lane", {bits});
  std::memcpy(&v, &lanes[(threadIdx.x ^ (unsigned int)(mask)) % 32], sizeof v);
  return v;
}
template <class T>
CXXI_FN T cxxi_of_lane(T v, int lane) {
  uint64_t bits = 0;
  std::memcpy(&bits, &v, sizeof v);
  const auto& lanes = cxxi_emulation::block->exchange("cxxi_of_lane", {bits});
  std::memcpy(&v, &lanes[lane], sizeof v);
  return v;
}
CXXI_FN long long cxxi_uniform(long long value) {
  uint64_t any = 0;
  for (const auto& lane : cxxi_emulation::block->exchange("cxxi_uniform", {uint64_t(value)})) any |= lane[0];
  return (long long)(any);
}
