// Calls that write to tensors -> calls that return what was written. Readers of a view after a write to its base read a
// view of the new base; a write to a view becomes a scatter into its base. What writes leave in inputs are the graph's
// mutations.
#pragma once

#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::model {

// Storage numbers of the values have to be known (0: shared with no other value). Unsupported, naming the call, for
// writes without a form that returns: out= overloads, ops in place that change sizes, writes of custom ops.
CallGraph functionalize(const CallGraph& calls, const SchemaSource& schemas);

}  // namespace cxxinductor::model
