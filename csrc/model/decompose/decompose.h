// Ops that the importer does not read, as calls of ops that it does: fragments in the place of calls, with sizes as expressions.
//
// A fragment computes what ATen's kernel does, in its compute type, with one rounding per tensor that eager has. Ops that take
// themselves apart in ATen (composites) need none: torch_bridge/replay.
#pragma once

#include <string>
#include <vector>

#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::model {

// The calls with fragments in the place of those that have a rule which covers them. Metadata of results stays as it is.
CallGraph decompose(const CallGraph& calls, const SchemaSource& schemas);

// Ops that have a rule, "aten::mse_loss", sorted.
std::vector<std::string> decomposed_ops();

}  // namespace cxxinductor::model
