// Writes through views.
#pragma once

#include "model/call_graph.h"

namespace cxxinductor::model {

// The call that returns `base` with the elements that `view` (a call of which `result` is a view of base) shows
// replaced by those of `changed`. Its result has the metadata of base; results and origin are the caller's to fill.
// view.results name values of `graph`.
Call inverse_of_view(const CallGraph& graph, const Call& view, size_t result, CallValue base, CallValue changed);

}  // namespace cxxinductor::model
