// The parts of a TorchScript graph that are compiled: nodes of one block without control flow between them.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <functional>
#include <memory>
#include <vector>

namespace cxxinductor::torch_bridge {

struct JitRegion {
  // Computes what the region's nodes compute, with the arithmetic on sizes that they need. Its result is a tuple:
  // tensors, then integers.
  std::shared_ptr<torch::jit::Graph> body;
  std::vector<torch::jit::Value*> inputs;  // of the outer graph: tensors, and values that are constants of the body
  size_t tensors = 0, numbers = 0;         // of the result
};

// Inserts what computes the region at the graph's insertion point; returns its results.
using MakeRegionCall = std::function<std::vector<torch::jit::Value*>(const JitRegion&)>;

// Replaces each region that is worth a call, in all blocks. Returns how many.
size_t replace_regions(const std::shared_ptr<torch::jit::Graph>& graph, const MakeRegionCall& make_call);

}  // namespace cxxinductor::torch_bridge
