// Invariants of one kernel of a plan: P1 to P7, see verify.cpp.
#pragma once

#include <string>
#include <vector>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

// `origins` serves the messages and may be null.
std::vector<std::string> verify_kernel(const Kernel& kernel, const OriginTable* origins);

}  // namespace cxxinductor::plan
