// Plan kernel -> C++ for the host compiler: no headers, GCC/Clang vector extensions, Sleef through function pointers.
#pragma once

#include <string>
#include <vector>

#include "codegen/templates.h"
#include "ir/origin.h"
#include "ir/plan/plan.h"
#include "ir/target.h"

namespace cxxinductor::codegen {

// A translation unit with, a kernel: extern "C" void NAME(void* const* buffers, const int64_t* symbols, int64_t begin,
// int64_t end), where begin..end are units of Launch::grid_x. Failing checks write to the last entry of buffers, an
// int64_t[4] error record, present when the kernel holds Check statements.
// The unit also defines `void* cxxi_math[]`, filled by the loader with the addresses of cpu_math_symbols(), in order.
std::string emit_cpu(const std::vector<const plan::Kernel*>& kernels, const Target& target, const OriginTable& origins,
                     Templates templates = Templates::Inlined);
// Names of the external functions (Sleef) that the unit calls through cxxi_math, in slot order.
std::vector<std::string> cpu_math_symbols(const std::vector<const plan::Kernel*>& kernels, const Target& target);

}  // namespace cxxinductor::codegen
