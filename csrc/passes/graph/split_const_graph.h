// What depends on frozen inputs alone, as a graph of its own: run once, and again when one of them was written.
//
// Conversions of weights (to another dtype, to channels-last strides, padded for tensor cores) cost every call what
// they cost once. No pass of the pipeline: it makes two graphs of one, after the pipeline.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace cxxinductor::passes {

struct ConstGraph {
  graph::Graph graph;            // its outputs are what the calls' graph takes after its own inputs, in that order
  std::vector<uint32_t> inputs;  // of each of its inputs the position among the calls' graph's
};

// Splits what can be prepared off `graph`. Nothing, and graph as it was, where there is nothing to prepare. Left in the
// calls' graph is what moves no data (views), what a user could see or write (outputs share no memory between calls),
// and what would be kept in much more memory than it is made from.
std::optional<ConstGraph> split_const_graph(graph::Graph& graph);

}  // namespace cxxinductor::passes
