// Functions of this process that plans call, for control flow: a package numbers them from 0 on, in the order of the calls that it holds.
#pragma once

#include <string>
#include <vector>

#include "model/call_graph.h"

namespace cxxinductor::torch_bridge {

// Those that the calls name, in their order.
std::vector<Handle> functions_of(const model::CallGraph& calls);
// A plan's text for a package, and that of a package for this process. UserError where the plan calls another function.
std::string pack_functions(const std::string& plan, const std::vector<Handle>& functions);
std::string unpack_functions(const std::string& plan, const std::vector<Handle>& functions);

}  // namespace cxxinductor::torch_bridge
