// Limits how far fusions extend live ranges: a reader that computes instead of loading keeps alive what it computes from.
//
// The first plan is fused for time alone. If it needs more memory than eager, the graph is planned again under a limit on how
// far a fusion may extend live ranges that cost more bytes than they save.
#pragma once

#include "schedule/fusion/dependencies.h"
#include "schedule/fusion/score_fusion.h"
#include "schedule/schedule.h"

namespace cxxinductor::schedule {

class LiveRangeBudget {
 public:
  LiveRangeBudget(const Dependencies& dependencies, const FusionCosts& costs, LiveRangeLimit limit)
      : dependencies_(dependencies), costs_(costs), limit_(limit) {}

  // Whether `reader` may read `reads` instead of `buffer`.
  bool allow_inlining(const std::vector<loops::BufferId>& reads, loops::BufferId buffer, StepId reader) const;
  // Whether the two may run as one, at the place of either.
  bool allow_merge(StepId first, StepId second) const;

 private:
  bool far(size_t from, size_t to) const { return to > from + *limit_; }
  size_t last_use(loops::BufferId buffer, StepId besides) const;
  double reads_kept(const std::vector<loops::BufferId>& reads, StepId until, StepId besides) const;
  bool made_between(loops::BufferId buffer, StepId first, StepId second) const;
  double writes(StepId id) const;

  const Dependencies& dependencies_;
  const FusionCosts& costs_;
  LiveRangeLimit limit_;
};

}  // namespace cxxinductor::schedule
