// Regions without reductions on GPUs.
#include <algorithm>

#include "kernels/region/work.h"
#include "kernels/registry.h"
#include "sym/integer.h"

namespace cxxinductor::kernels {
namespace {

using loops::VarId;
using sym::Expr;

// Narrows the vectors where multiprocessors would idle.
plan::Pointwise pointwise_of(const FlatRegion& flat, const Target& target, int& vector_width) {
  plan::Pointwise shape;
  Expr count = points(flat, flat.space);
  const int loads = count_loads(flat, flat.space.empty() ? VarId() : flat.space.back());
  if (!count.is_constant()) {
    shape.unroll = loads <= 2 ? 2 : 1;
    return shape;
  }
  // Narrower vectors before idle multiprocessors.
  int64_t few = int64_t{64} * target.multiprocessors;
  while (vector_width > 1 && count.constant() / vector_width < few) vector_width /= 2;
  int64_t groups = sym::ceil_quotient(count.constant(), vector_width);
  if (groups <= int64_t{256} * target.multiprocessors) shape.block_threads = 128;
  // Unrolling must leave two waves of blocks, eight on a multiprocessor.
  int64_t two_waves = int64_t{2} * 8 * 256 * target.multiprocessors;
  int most = std::clamp(8 / std::max(loads, 1), 1, uses_random(flat) ? 2 : 4);
  // One wide load a thread: more blocks hide its latency better than more loads (a copy of 64M f32 on an H200 reaches 99 % of
  // torch's bandwidth with one, 95 with four).
  if (loads == 1 && vector_width >= 4 && !uses_random(flat)) most = 1;
  while (shape.unroll * 2 <= most && groups / (shape.unroll * 2) >= two_waves) shape.unroll *= 2;
  return shape;
}

bool accepts_all(const FlatRegion&, const Target&) { return true; }

MappedRegion map_pointwise(const FlatRegion& flat, const Target& target) {
  plan::Mapping mapping = start_mapping(flat, flat.space, target);
  mapping.shape = pointwise_of(flat, target, mapping.vector_width);
  return {std::move(mapping), schedule_looped(flat)};
}

}  // namespace

const KernelFamily family::pointwise{.name = plan::Pointwise::keyword, .simt = true, .accepts = accepts_all, .map = map_pointwise};

}  // namespace cxxinductor::kernels
