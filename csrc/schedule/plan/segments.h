// When each statement of a kernel runs, and which values survive from row loop to row loop.
#pragma once

#include <vector>

#include "ir/plan/plan.h"
#include "schedule/plan/flat_region.h"
#include "schedule/plan/persistent_values.h"

namespace cxxinductor::schedule {

struct Schedule {
  IdVector<loops::StmtId, plan::MemorySpace> memory_spaces;
  std::vector<plan::Segment> segments;
  // Most bytes of Persistent values, for one element of the row, that live from one row loop to the next.
  int persistent_bytes = 0;
};

// Every row loop loads and computes again what it needs.
Schedule schedule_looped(const FlatRegion& flat);

// Values that several row loops need are Persistent, or computed again from Persistent ones as `keeping` allows; the choice
// has the fewest bytes.
Schedule schedule_persistent(const FlatRegion& flat, RematPolicy policy);

}  // namespace cxxinductor::schedule
