// The head of a kernel: its parameters, and what it derives from them.
#pragma once

#include <string>
#include <vector>

#include "codegen/cuda/cuda_text.h"

namespace cxxinductor::codegen {

std::vector<std::string> parameters(const CudaText& text);
// Declares symbols and parameters by value.
void declare_symbols(CudaText& text);
// Opens the kernel's function, with the declarations that all of its statements may use.
void open_kernel(CudaText& text);

}  // namespace cxxinductor::codegen
