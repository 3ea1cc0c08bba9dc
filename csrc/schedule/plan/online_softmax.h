// For rows too long for registers: computes the maximum and the sum of exp(x - maximum) in one row loop over memory instead
// of two (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018).
#pragma once

#include <optional>

#include "kernels/region/flat_region.h"

namespace cxxinductor::schedule {

// The region with every such pair of reductions merged; nothing if there is none.
std::optional<kernels::FlatRegion> join_softmax_sums(const kernels::FlatRegion& flat);

}  // namespace cxxinductor::schedule
