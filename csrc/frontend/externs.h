// Calls that stay calls: matmul, convolution, attention, scatters, random draws, and every op that no row covers.
#pragma once

#include "frontend/importer.h"

namespace cxxinductor::frontend {

// An extern node with alias, mutation and order annotations from the schema. Unsupported, naming op and model line, when the
// schema is unknown or a value is of a kind that the graph cannot carry. A None result gets a value of u8[0] that
// nothing reads, so that results keep their positions.
std::vector<ValueId> import_extern(CallContext& context, const CallGraph& graph, const SchemaSource& schemas);
// A call that reads the one integer or bool of a tensor, which is the symbol from then on.
void import_scalar_read(CallContext& context, const std::string& symbol);

// The value on another device, contiguous, by a call of torch's own copy, which orders itself with the work queued on both.
ValueId copied_to_device(graph::Builder& build, ValueId value, Device device);

}  // namespace cxxinductor::frontend
