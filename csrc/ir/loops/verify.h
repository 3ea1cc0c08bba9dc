// Invariants of the loops IR, numbered L1, L2, ... at the head of verify.cpp, with a negative test each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/loops/loops.h"

namespace cxxinductor::loops {

std::vector<std::string> verify(const Program& program);
void verify_or_throw(const Program& program, std::string_view after);

}  // namespace cxxinductor::loops
