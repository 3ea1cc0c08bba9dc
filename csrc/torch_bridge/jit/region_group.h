// Regions as nodes of a graph in memory: the node's op runs the region. What is saved has region modules (region_module.h) instead.
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <memory>
#include <string>
#include <vector>

#include "torch_bridge/jit/region.h"

namespace cxxinductor::torch_bridge {

// Replaces the graph's regions by such nodes; returns them. name: theirs, before a number. saved: as Region takes it.
std::vector<c10::intrusive_ptr<Region>> group_regions(const std::shared_ptr<torch::jit::Graph>& graph, const std::string& name, const Options& options,
                                                      const NodeSet& excluded = {}, const std::shared_ptr<const SavedForms>& saved = nullptr);

}  // namespace cxxinductor::torch_bridge
