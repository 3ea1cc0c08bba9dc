// Regions without reductions on GPUs.
#include <algorithm>

#include "kernels/body/lower_body.h"
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

bool draws_random(const plan::Kernel& kernel) {
  return std::ranges::any_of(kernel.region.body, [](const loops::Stmt& stmt) {
    const auto* apply = stmt.as<loops::Apply>();
    return apply && info(apply->op).traits.random;
  });
}

Instance instantiate_pointwise(const plan::Kernel& kernel, plan::Variant) {
  const auto& shape = kernel.mapping.get<plan::Pointwise>();
  const Body body = lower_segment(kernel, 0);
  const std::vector<VarId>& space = kernel.mapping.space;
  const Expr groups = count_groups(kernel, space, body.slot.width);
  // Blocks without a tail that draw random words: one straight body, in which the compiler shares the keys of all groups of a thread.
  // Without keys to share it would only raise register pressure: gelu lost a seventh of its speed.
  const bool even = draws_random(kernel) && sym::prove_divides(int64_t{shape.block_threads} * shape.unroll, groups, kernel.assumptions);
  return {"pointwise_kernel",
          {{"threads", shape.block_threads},
           {"unroll", shape.unroll},
           {"single", when(shape.unroll == 1)},
           {"several", when(shape.unroll > 1)},
           {"block", BlockNumber()},
           {"uniform_loads", loads_made_once(kernel)},
           {"counted", when(!even)},
           {"groups", groups},
           {"ahead", groups_ahead(kernel, body)},
           {"passes", passes_of(body)},
           {"coordinates", Coordinates{"cxxi_linear", space, body.slot.width}},
           {"lanes", lanes_of(body.slot)}}};
}

}  // namespace

const KernelFamily family::pointwise{
    .name = plan::Pointwise::keyword, .simt = true, .accepts = accepts_all, .map = map_pointwise, .instantiate = instantiate_pointwise};

}  // namespace cxxinductor::kernels
