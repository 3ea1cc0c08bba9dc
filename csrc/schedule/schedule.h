// Loops -> plan: which regions become one kernel (can_fuse, score_fusion, fuse), in which order, with which mapping,
// and where every buffer lives.
#pragma once

#include "ir/loops/loops.h"
#include "ir/plan/plan.h"
#include "ir/target.h"
#include "support/options.h"

namespace cxxinductor::schedule {

// Merges regions; the result is a program with fewer, larger regions. Refusals say why neighbours stayed apart.
loops::Program fuse(loops::Program program, const Target& target, const Options& options, std::vector<plan::Refusal>* refusals);
// Maps each region onto the target, lays out buffers, orders steps.
plan::Plan make_plan(const loops::Program& program, const Target& target, const Options& options);

}  // namespace cxxinductor::schedule
