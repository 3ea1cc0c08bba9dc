// Invariants of the plan IR, numbered P1, P2, ... at the head of verify.cpp, with a negative test each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

std::vector<std::string> verify(const Plan& plan);
void verify_or_throw(const Plan& plan, std::string_view after);

}  // namespace cxxinductor::plan
