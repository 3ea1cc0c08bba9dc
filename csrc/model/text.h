// Text form of a call graph; print(parse(t)) == t for printed t. Syntax: docs/ir.md. The environment (targets, determinism)
// and objects of this process are no part of it.
#pragma once

#include <string>
#include <string_view>

#include "model/call_graph.h"

namespace cxxinductor::model {

std::string print(const CallGraph& calls);
CallGraph parse(std::string_view text);  // UserError with line and column on bad text; the result is verified

}  // namespace cxxinductor::model
