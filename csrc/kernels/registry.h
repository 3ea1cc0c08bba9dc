// The families by name, for their folders, which define them, and for registry.cpp, which lists them.
#pragma once

#include "kernels/family.h"

namespace cxxinductor::kernels::family {

#define FAMILY(name) extern const KernelFamily name;
#include "kernels/families.def"
#undef FAMILY

}  // namespace cxxinductor::kernels::family
