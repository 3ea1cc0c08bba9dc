// The texts of kernels_templates/, embedded at build time: the libraries need no files at run time.
//
// A template with variables is a source that compiles as it stands: a variable is the text between `/*{{name*/` and `/*}}*/`,
// which is an example of its value. Rendering needs a value for every variable, and a variable for every value.
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

using TemplateVariables = std::map<std::string, std::string, std::less<>>;

// The text with its variables replaced, each occurrence by the same value. Lines of a value are indented as the variable is.
// InternalError names `file` and the variable: no value, no such variable, no end, or one inside another.
std::string render_template(std::string_view text, const TemplateVariables& values, std::string_view file);
// template_text, rendered.
std::string render_template_file(std::string_view name, const TemplateVariables& values);

}  // namespace cxxinductor::codegen
