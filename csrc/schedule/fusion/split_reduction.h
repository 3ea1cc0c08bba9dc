// Few long reductions leave most of the machine idle. Such a region becomes two: one that reduces pieces of the rows
// into a temporary, and one that reduces the pieces' results and does what comes after.
#pragma once

#include "schedule/fusion/dependencies.h"
#include "schedule/fusion/score_fusion.h"

namespace cxxinductor::schedule {

// Cuts `var`, one of those that the reductions over `over` run over, into pieces of rows that are walked one after the other;
// other reductions stay with their rows.
void split_serial_reduction(Dependencies& dependencies, StepId step, loops::VarSet over, loops::VarId var, int64_t pieces);

void split_reductions(Dependencies& dependencies, const FusionCosts& costs, const Targets& targets);

}  // namespace cxxinductor::schedule
