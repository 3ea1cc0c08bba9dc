// Text form of the loops IR; print(parse(t)) == t for printed t. Syntax: docs/ir.md.
#pragma once

#include <string>
#include <string_view>

#include "ir/loops/loops.h"

namespace cxxinductor::loops {

std::string print(const Program& program);
std::string print(const Program& program, const Region& region);
Program parse(std::string_view text);  // UserError with line and column on bad text; the result is verified

}  // namespace cxxinductor::loops
