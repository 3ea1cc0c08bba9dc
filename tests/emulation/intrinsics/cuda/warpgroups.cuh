// The host's kernels_templates/intrinsics/cuda/warpgroups.cuh. Each thread computes its own sums, from the places that the hardware reads.
struct cxxi_tile_descriptor {
  const char* start;
  int leading, stride, swizzle;
  // Of element `across` (of m or n), k; 16 bits each.
  const void* at(bool along_k, int across, int k) const {
    const int within = swizzle / 2;
    const char* plain = along_k ? start + across / 8 * stride + across % 8 * swizzle + k * 2
                                : start + across / within * leading + k / 8 * stride + k % 8 * swizzle + across % within * 2;
    const auto address = uintptr_t(plain);
    const auto chunks = uintptr_t(swizzle / 16 - 1);
    return reinterpret_cast<const void*>(address ^ (address >> 7 & chunks) << 4);
  }
};
CXXI_FN cxxi_tile_descriptor cxxi_describe_tile(const void* start, int leading, int stride, int swizzle) {
  if ((swizzle != 64 && swizzle != 128) || uintptr_t(start) % 16 != 0)
    cxxi_emulation::block->fail("cxxi_describe_tile", "no such tile");
  return {static_cast<const char*>(start), leading, stride, swizzle};
}
CXXI_FN void cxxi_publish_stage() {}
CXXI_FN void cxxi_begin_products() {}
CXXI_FN void cxxi_commit_products() { cxxi_emulation::block->commit(cxxi_emulation::Queue::Products); }
template <int Pending>
void cxxi_wait_products() {
  cxxi_emulation::block->wait(cxxi_emulation::Queue::Products, Pending);
}
CXXI_FN void cxxi_settle(float&) {}
template <bool LeftAlongK, bool RightAlongK, int Groups, class T>
void cxxi_multiply_add_group(float (&sums)[Groups][4], cxxi_tile_descriptor left, cxxi_tile_descriptor right, T) {
  cxxi_emulation::block->start(cxxi_emulation::Queue::Products, [&sums, left, right] {
    const auto value = [](const void* at) { return cxxi_factor_value(*static_cast<const T*>(at)); };
    const int warp = int(threadIdx.x) / 32 % 4, lane = int(threadIdx.x) % 32;
    for (int j = 0; j < Groups; ++j)
      for (int e = 0; e < 4; ++e) {
        const int row = warp * 16 + e / 2 * 8 + lane / 4, column = j * 8 + lane % 4 * 2 + e % 2;
        for (int k = 0; k < 16; ++k) sums[j][e] += value(left.at(LeftAlongK, row, k)) * value(right.at(RightAlongK, column, k));
      }
  });
}
