// The text of kernels_templates/, embedded at build time: the libraries need no files at run time.
#pragma once

#include <string>
#include <string_view>

namespace cxxinductor::codegen {

// "cuda/prelude.cuh" -> its text, with `#include "..."` lines of other templates replaced by their text. InternalError for
// an unknown name.
std::string template_text(std::string_view name);

}  // namespace cxxinductor::codegen
