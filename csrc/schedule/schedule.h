// Loops -> plan. Decides which regions become one kernel, the order of steps, the mapping of each kernel and the memory of
// each buffer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/loops/loops.h"
#include "ir/plan/plan.h"
#include "ir/target.h"
#include "support/options.h"

namespace cxxinductor::schedule {

// Steps over which a fusion may extend the live ranges of more bytes than it saves; absent: any number.
using LiveRangeLimit = std::optional<size_t>;
// What option fusion_limit counts: merges of two regions, readers that compute what they loaded, and library calls and long reductions
// that became regions of their own.
struct FusionCount {
  size_t accepted = 0;
  std::string refused;  // the first one beyond the limit, by the names of regions in the result; empty: there was none
};
// Merges regions; the result is a program with fewer, larger regions. missed_fusions, where asked for: of each region of the
// result that reads what another stores, why they are apart.
// late_inputs: positions of inputs that the caller has later than the others (driver::Request); no region that does not need them is
// merged with one that does.
loops::Program fuse(loops::Program program, const Targets& targets, const Options& options,
                    std::vector<plan::MissedFusion>* missed_fusions, LiveRangeLimit limit = {},
                    const std::vector<uint32_t>& late_inputs = {}, FusionCount* count = nullptr);
// Orders steps, maps each region to the target of its device, places buffers. eager_peaks: peak memory of the same calls run
// one by one, which the plan should not exceed (plan::Plan::eager_peaks). Unsupported if a region is on a device without a
// target. missed_fusions: of fuse(), for Plan::missed_fusions.
plan::Plan make_plan(loops::Program program, const Targets& targets, const Options& options,
                     std::map<Device, int64_t> eager_peaks = {}, std::vector<plan::MissedFusion> missed_fusions = {});

}  // namespace cxxinductor::schedule
