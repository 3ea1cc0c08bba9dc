// Invariants of the graph IR, numbered G1, G2, ... at the head of verify.cpp, with a negative test each.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/graph.h"

namespace cxxinductor::graph {

std::vector<std::string> verify(const Graph& graph);               // empty when sound; each message names invariant, value and origin
void verify_or_throw(const Graph& graph, std::string_view after);  // InternalError with every message and the text

}  // namespace cxxinductor::graph
