// Bodies as C++ of kernels_templates/cpu/vector.h, applied to `L` lanes or to one: a spelling of each kind of step.
#pragma once

#include <string_view>

#include "codegen/cpu/cpu_text.h"

namespace cxxinductor::codegen {

// leave: the statement that ends the kernel where a check fails.
void print_steps(CpuText& text, const kernels::Body& body, std::string_view leave);

}  // namespace cxxinductor::codegen
