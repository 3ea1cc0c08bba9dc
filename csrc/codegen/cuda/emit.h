// Plan kernel -> CUDA C++ for NVRTC: header-free text, the prelude of kernels_templates/cuda included by value.
#pragma once

#include <string>
#include <vector>

#include "codegen/templates.h"
#include "ir/origin.h"
#include "ir/plan/plan.h"

namespace cxxinductor::codegen {

// A translation unit with one extern "C" __global__ function per kernel, named kernel.name.
// Signature: (T0* p0, T1* p1, ..., long long a_s0, ...) in the order of params, then symbols; a parameter by value is
// T0 h0. A kernel with Kernel::max_grouped > 1 takes the table of ir/plan/grouped_launch.h by value instead. Then int* cxxi_record,
// eight zeroed ints, when the kernel holds Check statements: the first failing check leaves [1] its statement, [2..3]
// the index, [4..5] the bound (low half first) and then sets [6]. Accesses that a failed check guards are not made.
std::string emit_cuda(const std::vector<const plan::Kernel*>& kernels, plan::Variant variant, const OriginTable& origins,
                      Templates templates = Templates::Inlined);
bool cuda_has_checks(const plan::Kernel& kernel);

}  // namespace cxxinductor::codegen
