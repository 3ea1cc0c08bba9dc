// When each statement of a kernel runs, and which values survive from sweep to sweep.
#pragma once

#include <vector>

#include "ir/plan/plan.h"
#include "schedule/plan/flat_region.h"

namespace cxxinductor::schedule {

struct Schedule {
  IdVector<loops::StmtId, plan::Home> homes;
  std::vector<plan::Segment> segments;
  // Most bytes of Resident values, for one element of the row, that live from one sweep to the next.
  int resident_bytes = 0;
};

// Every sweep loads and computes again what it needs.
Schedule schedule_looped(const FlatRegion& flat);

// Values that several sweeps need are Resident, or cheap to compute from Resident ones; the choice has the fewest
// bytes. free_reloads: memory that was read a moment ago is as near as a Resident array (a CPU's cache), so only what
// is expensive to compute is kept.
Schedule schedule_resident(const FlatRegion& flat, bool free_reloads);

}  // namespace cxxinductor::schedule
