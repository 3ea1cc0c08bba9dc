// What holds for every call graph; the list is at the head of verify.cpp.
#pragma once

#include <string>
#include <vector>

#include "model/call_graph.h"

namespace cxxinductor::model {

// Violated invariants, each with the value or call; empty when there are none.
std::vector<std::string> verify(const CallGraph& calls);

}  // namespace cxxinductor::model
