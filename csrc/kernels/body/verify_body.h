// Invariants of bodies, numbered B1, B2, ... at the head of verify_body.cpp, with a negative test each.
#pragma once

#include <string>
#include <vector>

#include "kernels/body/body.h"

namespace cxxinductor::kernels {

// One message per violation. The kernel is a valid one (ir/plan/verify.h).
std::vector<std::string> verify_body(const plan::Kernel& kernel, const Body& body);

}  // namespace cxxinductor::kernels
