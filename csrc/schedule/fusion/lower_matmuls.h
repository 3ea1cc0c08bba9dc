// Calls of the vendor's matrix products that become kernels of ours: the product as a region, and in it what reads the
// product, as an epilogue. Runs after other fusion, so that an epilogue is all that its kernel would have been.
//
// Taken are mm, bmm, addmm and baddbmm of 16-bit floats whose factors the tensor-core template can read
// (schedule/plan/matmul.h); option epilogue_fusion says whether always, never, or where the cost model expects a gain
// over the call and a kernel of its own for the epilogue.
#pragma once

#include "ir/target.h"
#include "schedule/fusion/dependencies.h"
#include "schedule/fusion/score_fusion.h"
#include "support/options.h"

namespace cxxinductor::schedule {

void lower_matmuls(Dependencies& dependencies, const FusionCosts& costs, const Targets& targets, const Options& options);

}  // namespace cxxinductor::schedule
