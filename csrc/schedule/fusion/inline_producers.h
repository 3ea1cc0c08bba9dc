// Computing instead of loading: a buffer whose elements are cheap to compute is computed by its readers, and when all
// of them do, it is gone. Early, before regions merge: constants, positions, conversions, broadcasts of little, and
// whatever is read in another arrangement than it is computed in (slices, gathers, parts of a cat), since that cannot
// merge later. Late: what a fused region stores but readers could compute from fewer bytes.
#pragma once

#include <set>

#include "schedule/fusion/dependencies.h"
#include "schedule/fusion/live_range_budget.h"
#include "schedule/fusion/score_fusion.h"
#include "support/options.h"

namespace cxxinductor::schedule {

enum class Inlining : uint8_t { Early, Late };
// kept: buffers that stay stored.
bool inline_producers(Dependencies& dependencies, const FusionCosts& costs, const Options& options,
                      const LiveRangeBudget& live_range_budget, Inlining when, const std::set<loops::BufferId>& kept = {});

}  // namespace cxxinductor::schedule
