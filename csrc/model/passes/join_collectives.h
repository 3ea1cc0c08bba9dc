// Small collectives -> fewer, larger ones: those of one group, kind and dtype that do not depend on each other become one
// call of torch's coalesced form, which starts them together.
//
// Works on the model's calls, not on a later IR: a rank that runs a graph op by op through ATen has to start the same collectives
// in the same order as a rank that compiled it. For the same reason the result depends on the calls and the arguments alone, and
// only collectives join whose size no rank can find to be symbolic before the others do.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::model {

// calls: without writes, but for those of custom ops and to inputs; nothing moves past them. limit: bytes of a joined call, of its
// operands or its results, whichever are more; 0: returns the calls as they are. steady: numbers of elements that no rank sees vary,
// those of parameters; nothing: all constant sizes are such. Tensors without dimensions are.
// Results keep their values. collective_notes of the result state what was joined, and what was not and why.
CallGraph join_collectives(CallGraph calls, const SchemaSource& schemas, int64_t limit, const std::optional<std::set<int64_t>>& steady);

}  // namespace cxxinductor::model
