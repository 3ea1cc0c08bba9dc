// Products of a matrix and a vector, as decoding one token at a time has: all they do is read the matrix once.
#pragma once

#include "ir/target.h"
#include "schedule/fusion/dependencies.h"
#include "schedule/fusion/fusion_limit.h"

namespace cxxinductor::schedule {

// Replaces library calls by sums over the rows of the matrix, which are fused like any others: with one another where they have the same rows,
// with what reads their results. Whether there were any.
bool lower_vector_products(Dependencies& dependencies, const Targets& targets, FusionLimit& limit);

}  // namespace cxxinductor::schedule
