// Splits a few long reductions, which would leave most of the device idle, into two regions: one reduces pieces of the rows
// into a temporary, the other reduces the pieces' results and computes what follows.
#pragma once

#include "schedule/fusion/dependencies.h"
#include "schedule/fusion/fusion_limit.h"
#include "schedule/fusion/score_fusion.h"

namespace cxxinductor::schedule {

// Cuts `var`, one of the variables of the reductions over `over`, into pieces whose rows are processed serially; other
// reductions stay with their rows.
void split_serial_reduction(Dependencies& dependencies, StepId step, loops::VarSet over, loops::VarId var, int64_t pieces);

void split_reductions(Dependencies& dependencies, const FusionCosts& costs, const Targets& targets, FusionLimit& limit);

}  // namespace cxxinductor::schedule
