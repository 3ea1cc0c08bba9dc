// aten::_foreach_*: one call over lists of tensors, as optimisers make them. Each is an elementwise op at every position
// of the lists, and is imported as those.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/call_graph.h"

namespace cxxinductor::frontend {

// The equivalent calls on single tensors, in order; each computes one result. None if the call is not a foreach call, or a
// form of one without equivalent calls.
std::optional<std::vector<model::Call>> calls_of_foreach(const model::Call& call);

// The overloads that calls_of_foreach takes apart.
std::vector<std::string_view> foreach_overloads();

}  // namespace cxxinductor::frontend
