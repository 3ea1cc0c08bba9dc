// Text form of a call graph; print(parse(t)) == t for printed t. Syntax: docs/ir.md. The environment (targets, determinism)
// and objects of this process are no part of it.
#pragma once

#include <string>
#include <string_view>

#include "model/call_graph.h"

namespace cxxinductor::model {

std::string print(const CallGraph& calls);
// A value's type, with the ranges of the symbols in it: "f32[b, 3] on cpu where 1 <= b <= 8".
std::string print_type(const CallGraph& calls, CallValue value);
CallGraph parse(std::string_view text);  // UserError with line and column on bad text; the result is verified

}  // namespace cxxinductor::model
