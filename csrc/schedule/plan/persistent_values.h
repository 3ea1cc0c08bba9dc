// Which values to keep from row loop to row loop: a smallest cut between what cannot be had again and what is needed again.
#pragma once

#include <vector>

#include "schedule/plan/flat_region.h"

namespace cxxinductor::schedule {

// What must be kept rather than had again.
struct RematPolicy {
  bool loads = false;      // memory is far: loads that vary over space are not repeated
  bool expensive = false;  // nor are expensive operations
  bool early = false;      // among choices of equally many bytes, values that are computed the earliest: loads, mostly
};

// first: the row loop in which a row-varying statement is first needed. The result marks statements; each statement that a
// later row loop needs is marked or can be computed from marked ones without what `keeping` says must not be repeated. The
// marked statements have the fewest bytes, and among such choices are computed the latest, or the earliest.
std::vector<bool> choose_persistent_values(const FlatRegion& flat, const std::vector<int>& first, RematPolicy policy);

}  // namespace cxxinductor::schedule
