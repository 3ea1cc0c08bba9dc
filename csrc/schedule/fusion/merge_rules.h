// What every merge of two steps has to satisfy, whoever decides it: inputs that come later, and live ranges.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "schedule/fusion/dependencies.h"
#include "schedule/fusion/live_range_budget.h"

namespace cxxinductor::schedule {

class MergeRules {
 public:
  // late_inputs: positions of inputs that a caller may have later than the others (driver/stages.h, PipelineInputs).
  MergeRules(const Dependencies& dependencies, const LiveRangeBudget& live_ranges, const std::vector<uint32_t>& late_inputs);

  // Why two steps, in their order, may not become one; empty: they may.
  std::string_view blocker(StepId first, StepId second) const;

 private:
  bool is_late(StepId id) const;
  void find_late() const;

  const Dependencies& dependencies_;
  const LiveRangeBudget& live_ranges_;
  std::vector<loops::BufferId> late_inputs_;
  // Late inputs and what depends on them, of as many buffers as there were then: splits of reductions add some. Merges change nothing, since
  // they are of two late steps or of none.
  mutable std::set<loops::BufferId> late_;
  mutable size_t buffers_ = 0;
};

}  // namespace cxxinductor::schedule
