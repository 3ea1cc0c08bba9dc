// Text form of the plan IR; print(parse(t)) == t for printed t. Syntax: docs/ir.md.
#pragma once

#include <string>
#include <string_view>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

std::string print(const Plan& plan);
std::string print(const Kernel& kernel);  // without origins: equal text is an equal kernel
Plan parse(std::string_view text);        // UserError with line and column on bad text; the result is verified

}  // namespace cxxinductor::plan
