// Splits off what depends on frozen inputs alone: a graph of its own, run once and again after one of them was written.
//
// It saves every call the conversions of weights (to another dtype, to channels-last strides, padded for tensor cores). It runs
// after the pipeline and is not one of its passes, since it makes two graphs of one.
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

// Removes what can be folded from `graph`; nothing if there is none. The calls' graph keeps views, which move no data, values that
// a user could see or write (outputs share no memory between calls), and values much larger than what they are computed from.
std::optional<ConstGraph> split_const_graph(graph::Graph& graph);

}  // namespace cxxinductor::passes
