// Invariant P20 of plans: symbols are defined before they are used; see verify.cpp.
#pragma once

#include <string>
#include <vector>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

// Ids of the plan are in range.
std::vector<std::string> verify_symbols(const Plan& plan);

}  // namespace cxxinductor::plan
