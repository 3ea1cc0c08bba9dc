// A compiled part of a TorchScript module: a submodule with the part's code as a method, and its compiled forms.
//
// The graph around it calls cxxinductor::run_region(region, arguments), an op that is there wherever the library is
// loaded. PyTorch saves the submodule with its code, so that a loaded one can compile, or run as it stands.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <memory>
#include <string>
#include <vector>

#include "support/options.h"
#include "torch_bridge/jit/regions.h"

namespace cxxinductor::torch_bridge {

torch::jit::Module make_region_module(const std::string& name, const JitRegion& region, const Options& options,
                                      const std::shared_ptr<torch::jit::CompilationUnit>& unit);
// Inserts the call of a region module at the graph's insertion point; returns the region's results.
std::vector<torch::jit::Value*> insert_region_call(torch::jit::Graph& graph, torch::jit::Value* module,
                                                   const JitRegion& region);

bool is_region_module(const torch::jit::Module& module);
std::string describe_region(const torch::jit::Module& module);

}  // namespace cxxinductor::torch_bridge
