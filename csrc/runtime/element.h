// One element in memory <-> Scalar, for hosts and tests without torch. Not for hot paths.
#pragma once

#include "ir/scalar.h"

namespace cxxinductor::runtime {

Scalar read_element(DType dtype, const void* address);
void write_element(const Scalar& value, void* address);  // in value.dtype()

}  // namespace cxxinductor::runtime
