// The texts of kernels_templates/, embedded at build time: the libraries need no files at run time.
// render_template.h renders those that have variables.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "support/text_writer.h"

namespace cxxinductor::codegen {

// "cuda/prelude.cuh" -> its text, with `#include "..."` lines of other templates replaced by their text. InternalError for
// an unknown name.
std::string template_text(std::string_view name);

// How a unit has the templates that its kernels call: by value, as compilers take it, or as `#include "cuda/prelude.cuh"` lines,
// so that a reader sees the kernels alone.
enum class Templates { Inlined, Included };
void add_template(TextWriter& out, std::string_view name, Templates templates);
// The templates that the text includes, and those that they include: name -> text as it stands.
std::map<std::string, std::string> included_templates(std::string_view text);

}  // namespace cxxinductor::codegen
