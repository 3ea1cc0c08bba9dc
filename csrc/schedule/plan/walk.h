// Rows that a block takes in turn, so that what is reduced across rows stays in registers until the end: backwards of norms
// read their operands once, for the gradient of the input and for those of the weights.
#pragma once

#include <optional>

#include "schedule/plan/mapping.h"

namespace cxxinductor::schedule {

// How threads of a block share a row of `groups` groups whose reductions over the walk take `accumulators` registers for
// each element, beside `resident_bytes` that sweeps keep.
struct WalkShape {
  int threads_per_row = 1, rows_per_block = 1, items_per_thread = 1;
};
// Nothing where registers do not suffice. Fusion asks before it makes such a region.
std::optional<WalkShape> walk_shape(int64_t groups, int vector_width, int accumulators, int resident_bytes);

// flat has a walk. Unsupported where the row does not fit after all.
MappedRegion map_walk(const FlatRegion& flat, const Target& target, plan::Mapping mapping);

}  // namespace cxxinductor::schedule
