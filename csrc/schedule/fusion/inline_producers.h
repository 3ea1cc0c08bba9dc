// Inlines producers: readers compute the elements of a buffer instead of loading them. Once all readers do, the buffer is
// removed. Early, before regions merge: constants, positions, conversions, small broadcasts, and whatever is read in another
// arrangement than it is computed in (slices, gathers, operands of a cat), since that cannot merge later. Late: what a
// fused region stores but readers could compute from fewer bytes.
#pragma once

#include <set>

#include "schedule/fusion/dependencies.h"
#include "schedule/fusion/fusion_limit.h"
#include "schedule/fusion/live_range_budget.h"
#include "schedule/fusion/score_fusion.h"
#include "support/options.h"

namespace cxxinductor::schedule {

enum class Inlining : uint8_t { Early, Late };
// kept: buffers that stay stored.
bool inline_producers(Dependencies& dependencies, const FusionCosts& costs, const Options& options, const LiveRangeBudget& live_range_budget,
                      FusionLimit& limit, Inlining when, const std::set<loops::BufferId>& kept = {});

}  // namespace cxxinductor::schedule
