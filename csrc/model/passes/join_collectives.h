// Small collectives -> fewer, larger ones: those of one group, kind and dtype that do not depend on each other become one
// call of torch's coalesced form, which starts them together.
//
// Works on the model's calls, not on a later IR: a rank that runs a graph op by op through ATen has to start the same collectives
// in the same order as a rank that compiled it. For the same reason the result depends on the calls and the arguments alone, and
// nothing is joined where the size of a collective may become symbolic on one rank before the others.
#pragma once

#include <cstdint>

#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::model {

// calls: without writes, but for those of custom ops and to inputs; nothing moves past them. limit: bytes of a joined call, of its
// operands or its results, whichever are more; 0: returns the calls as they are. sizes_may_vary: later graphs of the same program may
// have symbols where this one has constants.
// Results keep their values. collective_notes of the result state what was joined, and what was not and why.
CallGraph join_collectives(CallGraph calls, const SchemaSource& schemas, int64_t limit, bool sizes_may_vary);

}  // namespace cxxinductor::model
