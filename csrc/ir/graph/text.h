// Text form of the graph IR; print(parse(t)) == t for printed t. Syntax: docs/ir.md.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph/graph.h"

namespace cxxinductor::graph {

std::string print(const Graph& graph);
Graph parse(std::string_view text);  // UserError with line and column on bad text; the result is verified

}  // namespace cxxinductor::graph
