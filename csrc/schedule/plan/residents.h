// Which values to keep from sweep to sweep: a smallest cut between what cannot be had again and what is needed again.
#pragma once

#include <vector>

#include "schedule/plan/flat_region.h"

namespace cxxinductor::schedule {

// first: the sweep in which a row-varying statement is first needed. The result marks statements; each statement that a
// later sweep needs is marked or can be computed from marked ones without loads (unless free_reloads) and without
// expensive operations. The marked statements have the fewest bytes, and among those are computed the latest.
std::vector<bool> choose_residents(const FlatRegion& flat, const std::vector<int>& first, bool free_reloads);

}  // namespace cxxinductor::schedule
