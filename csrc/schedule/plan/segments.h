// When each statement of a kernel runs, and which values survive from sweep to sweep.
#pragma once

#include <vector>

#include "ir/plan/plan.h"
#include "schedule/plan/flat_region.h"
#include "schedule/plan/residents.h"

namespace cxxinductor::schedule {

struct Schedule {
  IdVector<loops::StmtId, plan::Home> homes;
  std::vector<plan::Segment> segments;
  // Most bytes of Resident values, for one element of the row, that live from one sweep to the next.
  int resident_bytes = 0;
};

// Every sweep loads and computes again what it needs.
Schedule schedule_looped(const FlatRegion& flat);

// Values that several sweeps need are Resident, or computed again from Resident ones as `keeping` allows; the choice
// has the fewest bytes.
Schedule schedule_resident(const FlatRegion& flat, Keeping keeping);

}  // namespace cxxinductor::schedule
