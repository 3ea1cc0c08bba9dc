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
#include "torch_bridge/jit/saved_forms.h"

namespace cxxinductor::torch_bridge {

torch::jit::Module make_region_module(const std::string& name, const JitRegion& region, const Options& options,
                                      const std::shared_ptr<torch::jit::CompilationUnit>& unit);
// Inserts the call of a region module at the graph's insertion point; returns the region's results.
std::vector<torch::jit::Value*> insert_region_call(torch::jit::Graph& graph, torch::jit::Value* module, const JitRegion& region);

// Compiles the forms that the region has for these architectures, or the machine's, signs them and keeps them for the next save. Unsupported
// where one cannot be packaged. Returns how many. archs: as those of PackageOptions.
size_t pack_region(const torch::jit::Module& module, const std::vector<std::string>& archs, const package_file::SigningKey* key);

// Forms in the file that the region comes from, for people; "" where there are none.
std::string list_saved_forms(const torch::jit::Module& module);

// While it lives, regions that this thread loads get these options instead of the environment's: PyTorch's reader makes them.
class RegionOptions {
 public:
  explicit RegionOptions(const Options& options);
  ~RegionOptions();
  RegionOptions(const RegionOptions&) = delete;
  RegionOptions& operator=(const RegionOptions&) = delete;

 private:
  const Options* outer_;
};

bool is_region_module(const torch::jit::Module& module);
std::string describe_region(const torch::jit::Module& module);

}  // namespace cxxinductor::torch_bridge
