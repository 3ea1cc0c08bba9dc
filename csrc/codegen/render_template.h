// Templates with variables and blocks (kernels/instance.h): sources that compile as they stand.
//
//   /*{{name*/ 4 /*}}*/              a variable; the text between is an example of its value
//   /*{{for name*/ f(x); /*}}*/      a block; what is in it, variables and blocks too, is repeated for each set of values
//
// A block with lines of its own makes lines. Comments on lines of their own are for readers of the template. Brackets that are open indent
// the result, so that loops may be optional, and blank lines are dropped.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "kernels/instance.h"

namespace cxxinductor::codegen {

// The text of a value that is not a list.
using SpellValue = std::function<std::string(const kernels::Value& value)>;

// InternalError names `file` and the variable: there is no value for it; a list where one value is expected, or the reverse; a variable that
// does not end, or holds another; in builds with assertions also: a value without a variable.
std::string render_template(std::string_view text, const kernels::Values& values, const SpellValue& spell, std::string_view file);
// template_text, rendered.
std::string render_template_file(std::string_view name, const kernels::Values& values, const SpellValue& spell);
// Of values that have one text on all targets: words, numbers, names.
std::string spell_plain(const kernels::Value& value);

}  // namespace cxxinductor::codegen
