// For rows too long for registers: computes the maximum and the sum of exp(x - maximum) in one row loop over memory instead
// of two (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018).
#pragma once

#include <optional>

#include "kernels/region/flat_region.h"

namespace cxxinductor::kernels {

// The region with every such pair of reductions merged; nothing if there is none.
std::optional<FlatRegion> join_softmax_sums(const FlatRegion& flat);

}  // namespace cxxinductor::kernels
