#include "targets/cuda/recorded_node.h"

#include <algorithm>
#include <array>

namespace cxxinductor::targets {

bool same_kind(const Node& a, const Node& b) {
  if (a.type != b.type || a.parameters != b.parameters || a.own != b.own) return false;
  const CUDA_KERNEL_NODE_PARAMS &j = a.kernel, &k = b.kernel;
  const auto shape = [](const CUDA_KERNEL_NODE_PARAMS& p) {
    return std::array<unsigned, 7>{p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX, p.blockDimY, p.blockDimZ, p.sharedMemBytes};
  };
  if (j.func != k.func || j.kern != k.kern || shape(j) != shape(k)) return false;
  const auto fill = [](const CUDA_MEMSET_NODE_PARAMS& p) { return std::array<size_t, 5>{p.pitch, p.value, p.elementSize, p.width, p.height}; };
  const auto copy = [](const CUDA_MEMCPY3D& p) {
    return std::array<size_t, 15>{p.srcXInBytes,  p.srcY,        p.srcZ, p.srcLOD, static_cast<size_t>(p.srcMemoryType), p.srcPitch,
                                  p.srcHeight,    p.dstXInBytes, p.dstY, p.dstZ,   static_cast<size_t>(p.dstMemoryType), p.dstPitch,
                                  p.WidthInBytes, p.Height,      p.Depth};
  };
  return fill(a.fill) == fill(b.fill) && copy(a.copy) == copy(b.copy);
}

const Node::Parameter& parameter_of(const Node& node, uint32_t at) {
  return *std::prev(std::ranges::upper_bound(node.parameters, at, {}, &Node::Parameter::start));
}

}  // namespace cxxinductor::targets
