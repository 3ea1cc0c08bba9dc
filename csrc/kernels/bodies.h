// All bodies of a kernel, as its family has them: what is printed of kernels, and verified.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/body/body.h"

namespace cxxinductor::kernels {

std::vector<NamedBody> lower_bodies(const plan::Kernel& kernel);
// Of all kernels (kernels/body/verify_body.h); InternalError with every message.
void verify_bodies_or_throw(const plan::Plan& plan, std::string_view after);

}  // namespace cxxinductor::kernels
