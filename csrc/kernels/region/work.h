// What a point of a region costs, for the families that choose numbers of threads by it.
#pragma once

#include "kernels/region/flat_region.h"

namespace cxxinductor::kernels {

// Loads that a thread makes for each of its groups: they vary along v.
int count_loads(const FlatRegion& flat, loops::VarId v);
// Random numbers keep the arithmetic units as busy as memory; more threads with less work each overlap the two better.
bool uses_random(const FlatRegion& flat);
// Element operations at a point, those of expensive functions counted eightfold.
int64_t operations_at_point(const FlatRegion& flat);

int64_t power_of_two_up(int64_t n);
int64_t power_of_two_down(int64_t n);

}  // namespace cxxinductor::kernels
