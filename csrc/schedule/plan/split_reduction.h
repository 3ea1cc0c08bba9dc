// Reductions with too few results to fill a throughput device, cut into two kernels: partial results of parts of the
// row, and their combination.
#pragma once

#include <optional>
#include <vector>

#include "ir/target.h"
#include "schedule/plan/flat_region.h"

namespace cxxinductor::schedule {

struct SplitReduction {
  FlatRegion partial, combine;             // to be run in this order
  std::vector<loops::Buffer> temporaries;  // of partial results; their BufferIds start at the id given
};

// flat: ordered and merged. Nothing where one kernel is enough, and where the region cannot be cut: its body sweeps the
// row more than once, a state is more than the result (Welford, arg-max), or the row has no divisor that fits.
std::optional<SplitReduction> split_reduction(const FlatRegion& flat, const Target& target,
                                              loops::BufferId next_buffer);

}  // namespace cxxinductor::schedule
