// Makes bodies of slots: decides where values lie, what is loaded and stored in whole groups, and every guard.
#pragma once

#include <vector>

#include "kernels/body/body.h"

namespace cxxinductor::kernels {

Body lower_body(const plan::Kernel& kernel, Slot slot);
// Of one of the kernel's segments.
Body lower_segment(const plan::Kernel& kernel, size_t segment);

// Steps that load groups to the places, from addresses that follow from variables and symbols alone.
std::vector<Step> lower_loads(const plan::Kernel& kernel, const Slot& slot, const std::vector<Place>& loads);

// Values that row loops divide by in the form SharedDivisor, each once, in the order of first use.
std::vector<StmtId> shared_divisors(const plan::Kernel& kernel, size_t segment);

}  // namespace cxxinductor::kernels
