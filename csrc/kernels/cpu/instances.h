// What stands in the templates of the CPU's kernels.
#pragma once

#include "kernels/instance.h"

namespace cxxinductor::kernels {

Instance instantiate_cpu_pointwise(const plan::Kernel& kernel, plan::Variant variant);
Instance instantiate_cpu_rows(const plan::Kernel& kernel, plan::Variant variant);
Instance instantiate_cpu_columns(const plan::Kernel& kernel, plan::Variant variant);
Instance instantiate_cpu_tiles(const plan::Kernel& kernel, plan::Variant variant);

}  // namespace cxxinductor::kernels
