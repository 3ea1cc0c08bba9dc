// The parts of a TorchScript graph that are compiled: nodes of one block that follow each other, with control flow inside where
// that depends on no element of a tensor.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "torch_bridge/jit/traceable.h"

namespace cxxinductor::torch_bridge {

struct JitRegion {
  // Computes what the region's nodes compute. Its result is a tuple.
  std::shared_ptr<torch::jit::Graph> body;
  std::vector<torch::jit::Value*> inputs;  // of the outer graph: the body's arguments
};

// Inserts what computes the region at the graph's insertion point; returns the items of its result.
using MakeRegionCall = std::function<std::vector<torch::jit::Value*>(const JitRegion&)>;

// Replaces each region that is worth a call, in all blocks. Returns how many. excluded: nodes that cannot be in a region.
size_t replace_regions(const std::shared_ptr<torch::jit::Graph>& graph, const MakeRegionCall& make_call, const NodeSet& excluded = {});

// Ops that no region can hold, and so end them, each once: "aten::nonzero".
std::set<std::string> boundaries_of(const torch::jit::Graph& graph);

}  // namespace cxxinductor::torch_bridge
