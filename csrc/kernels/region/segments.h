// Assigns statements of a kernel to segments and chooses the values that stay alive between row loops.
#pragma once

#include <vector>

#include "ir/plan/plan.h"
#include "kernels/region/flat_region.h"
#include "kernels/region/persistent_values.h"

namespace cxxinductor::kernels {

struct Schedule {
  IdVector<loops::StmtId, plan::MemorySpace> memory_spaces;
  std::vector<plan::Segment> segments;
  // Peak bytes of Persistent values per element of the row, between two row loops.
  int persistent_bytes = 0;
};

// Every row loop loads and computes what it needs.
Schedule schedule_looped(const FlatRegion& flat);

// Values that several row loops need are Persistent, or recomputed from Persistent ones as the policy allows, with the fewest
// bytes.
Schedule schedule_persistent(const FlatRegion& flat, RematPolicy policy);

}  // namespace cxxinductor::kernels
