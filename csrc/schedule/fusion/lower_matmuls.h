// Turns calls of the vendor's matrix products into generated kernels: the product becomes a region, and what reads the
// product its epilogue. Runs after other fusion, so that an epilogue is everything that its kernel would have been.
//
// Candidates are mm, bmm, addmm and baddbmm of 16-bit floats whose factors the tensor-core template can read
// (kernels/matmul/matmul.h). Option epilogue_fusion takes all, none, or those for which the cost model expects a gain over
// the call followed by a kernel for the epilogue.
#pragma once

#include "ir/target.h"
#include "schedule/fusion/dependencies.h"
#include "schedule/fusion/fusion_limit.h"
#include "schedule/fusion/merge_rules.h"
#include "schedule/fusion/score_fusion.h"
#include "support/options.h"

namespace cxxinductor::schedule {

void lower_matmuls(Dependencies& dependencies, const FusionCosts& costs, const Targets& targets, const Options& options, const MergeRules& rules,
                   FusionLimit& limit);

}  // namespace cxxinductor::schedule
