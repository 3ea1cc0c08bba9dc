// Calls that write to tensors -> calls that return what was written. Readers of a view after a write to its base read a
// view of the new base; a write to a view becomes a scatter into its base. What writes leave in inputs are the graph's
// mutations.
#pragma once

#include <string>
#include <utility>

#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::model {

// Storage numbers of the values have to be known (0: shared with no other value). Unsupported, naming the call, for
// writes without a form that returns: ops in place that change sizes, writes of custom ops.
CallGraph functionalize(const CallGraph& calls, const SchemaSource& schemas);

// Callee and overload of what returns what the call writes, where names tell; its own otherwise.
std::pair<std::string, std::string> functional_name(const Call& call, const SchemaSource& schemas);

}  // namespace cxxinductor::model
