#include "schedule/fusion/merge_rules.h"

#include <algorithm>

namespace cxxinductor::schedule {

MergeRules::MergeRules(const Dependencies& dependencies, const LiveRangeBudget& live_ranges, const std::vector<uint32_t>& late_inputs)
    : dependencies_(dependencies), live_ranges_(live_ranges) {
  for (const uint32_t input : late_inputs)
    if (const loops::ProgramInput& late = dependencies.program().inputs[input]; late.kind == loops::ProgramInput::Kind::Tensor)
      late_inputs_.push_back(late.buffer);
}

std::string_view MergeRules::blocker(StepId first, StepId second) const {
  if (is_late(first) != is_late(second)) return "one can run before the inputs of the other are there";
  if (!live_ranges_.allow_merge(first, second)) return "the fused region would keep more bytes alive than it saves, and the plan is to hold no more than eager";
  return "";
}

bool MergeRules::is_late(StepId id) const {
  if (late_inputs_.empty()) return false;
  if (buffers_ != dependencies_.program().buffers.size()) find_late();
  const std::vector<loops::BufferId>& reads = dependencies_.summary(id).reads;
  return std::any_of(reads.begin(), reads.end(), [&](loops::BufferId buffer) { return late_.contains(buffer); });
}

void MergeRules::find_late() const {
  buffers_ = dependencies_.program().buffers.size();
  late_.insert(late_inputs_.begin(), late_inputs_.end());
  for (const StepId id : dependencies_.order()) {
    const RegionSummary& summary = dependencies_.summary(id);
    if (std::none_of(summary.reads.begin(), summary.reads.end(), [&](loops::BufferId buffer) { return late_.contains(buffer); })) continue;
    for (const loops::BufferId buffer : summary.writes)
      if (dependencies_.program().buffers[buffer].role != loops::Buffer::Role::Input) late_.insert(buffer);
  }
}

}  // namespace cxxinductor::schedule
