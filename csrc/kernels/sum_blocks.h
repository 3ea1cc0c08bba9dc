// Chooses the reductions whose states loops put aside (plan::Kernel::in_blocks), so that long sums are as exact as eager's cascades.
#pragma once

#include "ir/plan/plan.h"

namespace cxxinductor::kernels {

// Those for which roundings matter and whose loop may be long. The kernel has its region, assumptions and mapping.
void choose_sum_blocks(plan::Kernel& kernel);

}  // namespace cxxinductor::kernels
