// The texts of kernels_templates/, embedded at build time: the libraries need no files at run time.
//
// A template with variables is a source that compiles as it stands: a variable is the text between `/*{{name*/` and `/*}}*/`,
// which is an example of its value. Rendering needs a value for every variable, and a variable for every value.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace cxxinductor::codegen {

// "cuda/prelude.cuh" -> its text, with `#include "..."` lines of other templates replaced by their text. InternalError for
// an unknown name.
std::string template_text(std::string_view name);

using TemplateVariables = std::map<std::string, std::string, std::less<>>;

// The text with its variables replaced, each occurrence by the same value. Lines of a value are indented as the variable is.
// InternalError names `file` and the variable: no value, no such variable, no end, or one inside another.
std::string render_template(std::string_view text, const TemplateVariables& values, std::string_view file);
// template_text, rendered.
std::string render_template_file(std::string_view name, const TemplateVariables& values);

}  // namespace cxxinductor::codegen
