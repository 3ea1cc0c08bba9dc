// aten::_foreach_*: one call over lists of tensors, as optimisers make them. Each is an elementwise op at every position
// of the lists, and is imported as those.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "frontend/call_graph.h"

namespace cxxinductor::frontend {

// The calls on single tensors that the call stands for, in order; each makes one of its results. None when it is no
// foreach call, or a form of one that has no such calls.
std::optional<std::vector<Call>> calls_of_foreach(const Call& call);

// The overloads that calls_of_foreach takes apart.
std::vector<std::string_view> foreach_overloads();

}  // namespace cxxinductor::frontend
