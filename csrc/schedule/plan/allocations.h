// The steps of a plan that allocate, free and hand on memory.
#pragma once

#include <vector>

#include "ir/plan/plan.h"
#include "schedule/plan/in_place.h"
#include "schedule/plan/liveness.h"

namespace cxxinductor::schedule {

// To a plan whose steps all compute: each Standalone buffer is allocated before its first use, unless it takes over the memory of another, and
// what is not handed out is freed after its last one.
void add_allocations(plan::Plan& plan, const IdVector<plan::BufferId, BufferLiveness>& liveness, const std::vector<BufferReuse>& reuses);

}  // namespace cxxinductor::schedule
