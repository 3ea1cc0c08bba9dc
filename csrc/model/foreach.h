// aten::_foreach_*: one call over lists of tensors, as optimisers make them. Each is an elementwise op at every
// position of the lists, and is imported as those.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/call_graph.h"

namespace cxxinductor::model {

// A row for each overload: the op on one item. Arguments keep their positions: a list with as many items as there are
// results has one item per result, everything else is the same for all.
struct ForeachRow {
  std::string_view overload, callee, each_overload;  // "aten::_foreach_add.List", "aten::add", "Tensor"
};
const ForeachRow* find_foreach(std::string_view overload);  // null where there is none

// The equivalent calls on single tensors, in order; each computes one result. None if the call is not a foreach call,
// or a form of one without equivalent calls.
std::optional<std::vector<Call>> calls_of_foreach(const Call& call);

// The overloads that calls_of_foreach takes apart.
std::vector<std::string_view> foreach_overloads();

}  // namespace cxxinductor::model
