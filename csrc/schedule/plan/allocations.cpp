#include "schedule/plan/allocations.h"

#include <set>
#include <utility>

namespace cxxinductor::schedule {

void add_allocations(plan::Plan& plan, const IdVector<plan::BufferId, BufferLiveness>& liveness, const std::vector<BufferReuse>& reuses) {
  std::set<plan::BufferId> taken, takes;  // the memory of these goes to others; these get it from others
  std::vector<std::vector<plan::Reuse>> reused(plan.steps.size());
  for (const BufferReuse& reuse : reuses) {
    taken.insert(reuse.from);
    takes.insert(reuse.to);
    reused[reuse.time].push_back({reuse.from, reuse.to});
  }
  std::vector<std::vector<plan::BufferId>> allocated(plan.steps.size()), freed(plan.steps.size());
  std::vector<plan::BufferId> never_written;  // outputs without elements
  const auto each_buffer = [&](plan::Buffer::Kind kind, auto visit) {
    for (size_t b = 0; b < plan.buffers.size(); ++b)
      if (plan.buffers[plan::BufferId(b)].kind == kind) visit(plan::BufferId(b), liveness[plan::BufferId(b)]);
  };
  each_buffer(plan::Buffer::Kind::Standalone, [&](plan::BufferId id, const BufferLiveness& life) {
    if (!takes.contains(id)) (life.first < 0 ? never_written : allocated[static_cast<size_t>(life.first)]).push_back(id);
  });
  for (plan::Buffer::Kind kind : {plan::Buffer::Kind::Standalone, plan::Buffer::Kind::ExternOwned})
    each_buffer(kind, [&](plan::BufferId id, const BufferLiveness& life) {
      if (life.last >= 0 && !life.is_output && !life.aliased_output && !taken.contains(id)) freed[static_cast<size_t>(life.last)].push_back(id);
    });
  std::vector<plan::Step> steps;
  for (size_t t = 0; t < plan.steps.size(); ++t) {
    for (plan::BufferId id : allocated[t]) steps.emplace_back(plan::Allocate{id});
    for (const plan::Reuse& reuse : reused[t]) steps.emplace_back(reuse);
    steps.push_back(std::move(plan.steps[t]));
    for (plan::BufferId id : freed[t]) steps.emplace_back(plan::Free{id});
  }
  for (plan::BufferId id : never_written) steps.emplace_back(plan::Allocate{id});
  plan.steps = std::move(steps);
}

}  // namespace cxxinductor::schedule
