// Ops that the importer does not read, as calls of ops that it does: fragments in the place of calls, with sizes as expressions.
//
// A fragment computes what ATen's kernel does, in its compute type, with one rounding per tensor that eager has. Ops that take
// themselves apart in ATen (composites) need none: torch_bridge/replay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::model {

// Tables of rules.
enum class Fragments : uint8_t {
  Decompositions,  // of ops that the importer does not read
  RecomputeForms,  // of ops that hide from the backward pass what is cheap to compute again (recompute_forms.cpp)
};

// The calls with fragments in the place of those that have a rule which covers them. Metadata of results stays as it is. Calls that a fragment
// of Decompositions makes are decomposed in turn; InternalError where one leads to the op that it stands for.
CallGraph decompose(const CallGraph& calls, const SchemaSource& schemas, Fragments table = Fragments::Decompositions);

// A graph of one call as its fragment, in the types and layouts of the call's results; without results, they are those of
// model::infer. Nothing where no rule covers the call.
std::optional<CallGraph> fragment_of(CallGraph call, const SchemaSource& schemas, Fragments table);

// Ops that have a rule, "aten::mse_loss", sorted.
std::vector<std::string> ops_with_fragments(Fragments table);

}  // namespace cxxinductor::model
