// The text of kernels_templates/, embedded at build time: the libraries need no files at run time.
//
// A template with holes is a source that compiles as it stands: a hole is the text between `/*{{name*/` and `/*}}*/`, its
// own filling until it gets another. Every hole of a file is filled, by name, and every filling names a hole of the file.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace cxxinductor::codegen {

// "cuda/prelude.cuh" -> its text, with `#include "..."` lines of other templates replaced by their text. InternalError for
// an unknown name.
std::string template_text(std::string_view name);

using TemplateVariables = std::map<std::string, std::string, std::less<>>;

// The text with its holes filled; a hole that occurs several times gets the same text everywhere. Lines of a filling are
// indented as the hole is. InternalError names `file` and the hole for a hole without a filling, a filling without a hole,
// a hole that does not end, or one inside another.
std::string render_template(std::string_view text, const TemplateVariables& values, std::string_view file);
// template_text with its holes filled.
std::string render_template_file(std::string_view name, const TemplateVariables& values);

}  // namespace cxxinductor::codegen
