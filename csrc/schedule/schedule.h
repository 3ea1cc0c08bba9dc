// Loops -> plan: which regions become one kernel (can_fuse, score_fusion, fuse), in which order, with which mapping,
// and where every buffer lives.
#pragma once

#include "ir/loops/loops.h"
#include "ir/plan/plan.h"
#include "ir/target.h"
#include "support/options.h"

namespace cxxinductor::schedule {

// Steps over which a fusion may stretch the life of more bytes than it saves; absent: any number.
using LiveRangeLimit = std::optional<size_t>;
// Merges regions; the result is a program with fewer, larger regions. Refusals say why neighbours stayed apart.
loops::Program fuse(loops::Program program, const Target& target, const Options& options,
                    std::vector<plan::MissedFusion>* missed_fusions, LiveRangeLimit limit = {});
// Orders steps, maps each region onto the target, lays out buffers. eager_peak: bytes that the same calls hold when they run
// one by one, which the plan should not exceed (plan::Plan::eager_peak).
plan::Plan make_plan(loops::Program program, const Target& target, const Options& options,
                     std::optional<int64_t> eager_peak = {});

}  // namespace cxxinductor::schedule
