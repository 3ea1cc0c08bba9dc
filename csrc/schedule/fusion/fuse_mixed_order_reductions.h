// Merges regions that reduce along rows with regions that reduce across the same rows. A block takes the rows of its part
// one after the other, keeps the sums across them in registers, and stores the sums of its part (ir/loops/loops.h,
// Var::serial). A second region adds up the parts. What both read is read once.
#pragma once

#include "schedule/fusion/dependencies.h"
#include "schedule/fusion/fusion_limit.h"
#include "schedule/fusion/merge_rules.h"
#include "schedule/fusion/score_fusion.h"
#include "support/options.h"

namespace cxxinductor::schedule {

void fuse_mixed_order_reductions(Dependencies& dependencies, const FusionCosts& costs, const Targets& targets, const Options& options, const MergeRules& rules,
                                 FusionLimit& limit);

}  // namespace cxxinductor::schedule
