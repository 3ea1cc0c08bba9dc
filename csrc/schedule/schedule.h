// Loops -> plan: which regions become one kernel (can_fuse, score_fusion, fuse), in which order, with which mapping,
// and where every buffer lives.
#pragma once

#include <map>
#include <optional>

#include "ir/loops/loops.h"
#include "ir/plan/plan.h"
#include "ir/target.h"
#include "support/options.h"

namespace cxxinductor::schedule {

// Steps over which a fusion may stretch the life of more bytes than it saves; absent: any number.
using LiveRangeLimit = std::optional<size_t>;
// Merges regions; the result is a program with fewer, larger regions. Refusals say why neighbours stayed apart.
loops::Program fuse(loops::Program program, const Targets& targets, const Options& options,
                    std::vector<plan::MissedFusion>* missed_fusions, LiveRangeLimit limit = {});
// Orders steps, maps each region onto the target of its device, lays out buffers. eager_peaks: bytes that the same calls hold
// when they run one by one, which the plan should not exceed (plan::Plan::eager_peaks). Unsupported where a region is on a
// device without target.
plan::Plan make_plan(loops::Program program, const Targets& targets, const Options& options,
                     std::map<Device, int64_t> eager_peaks = {});

}  // namespace cxxinductor::schedule
