// Maps a region's points to threads: shape, widths and counts, from the region's accesses and the target's properties.
#pragma once

#include "ir/plan/plan.h"
#include "ir/target.h"
#include "kernels/region/flat_region.h"
#include "kernels/region/segments.h"

namespace cxxinductor::schedule {

struct MappedRegion {
  plan::Mapping mapping;
  kernels::Schedule schedule;
};

// flat: ordered, merged and named.
MappedRegion map_region(const kernels::FlatRegion& flat, const Target& target);

// The variable along which loads of a region without reductions are contiguous, where it is not the stores' (the last one of
// space) and both are long enough to pay for tiles.
loops::VarId transposed_variable(const kernels::FlatRegion& flat);

// Groups in all runs over `vars`.
sym::Expr group_count(const kernels::FlatRegion& flat, const std::vector<loops::VarId>& vars, int vector_width);

// Launch::grid_x, see ir/plan/mapping.h.
sym::Expr grid_size(const kernels::FlatRegion& flat, const plan::Mapping& mapping, const Target& target);

}  // namespace cxxinductor::schedule
