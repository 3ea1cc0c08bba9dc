// Graph -> loops, one region per node; views become coordinates. One small file for each family of nodes.
#pragma once

#include "ir/graph/graph.h"
#include "ir/loops/loops.h"

namespace cxxinductor::lowering {

// Every graph value that must exist in memory gets a buffer; a store of each node at identity coordinates. Views never
// become regions unless an extern or an output needs their elements laid out otherwise.
loops::Program lower(const graph::Graph& graph);

}  // namespace cxxinductor::lowering
