// Chooses the values that stay in registers between row loops: a minimum cut between what must not be recomputed and what
// is needed again.
#pragma once

#include <vector>

#include "kernels/region/flat_region.h"

namespace cxxinductor::kernels {

// What must stay in registers rather than be recomputed.
struct RematPolicy {
  bool loads = false;      // loads that vary over space are not repeated
  bool expensive = false;  // nor are expensive operations
  bool early = false;      // among cuts of equal bytes, the earliest values: mostly loads
};

// first: the row loop in which a row-varying statement is first needed. The result marks statements: each one that a later
// row loop needs is marked, or can be computed from marked ones without what the policy forbids to repeat. The marked
// statements have the fewest bytes; among equal cuts they are the latest, or the earliest.
std::vector<bool> choose_persistent_values(const FlatRegion& flat, const std::vector<int>& first, RematPolicy policy);

}  // namespace cxxinductor::kernels
