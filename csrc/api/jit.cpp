#include <cxxinductor/jit.h>
#include <fmt/format.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/remove_mutation.h>

#include "support/error.h"
#include "support/options.h"
#include "torch_bridge/jit/region_module.h"
#include "torch_bridge/jit/regions.h"
#include "torch_bridge/process_check.h"

namespace cxxinductor {

using torch::jit::Module;

Module optimize(const Module& module, const Options& options) {
  torch_bridge::check_process();
  check_options(options);
  if (!module.find_method("forward")) throw_user_error("optimize: expected a module with a method forward");
  if (module.is_training())
    throw_user_error("optimize: expected a module in evaluation mode, call eval() on it before");
  // Without optimize_numerics: folding batch norms into weights rounds elsewhere.
  Module optimized = torch::jit::freeze_module(module.clone());
  const std::shared_ptr<torch::jit::Graph> graph = optimized.get_method("forward").graph();
  torch::jit::Inline(*graph);
  torch::jit::RemoveListMutation(graph);
  torch::jit::RemoveTensorMutation(graph);
  torch::jit::EliminateDeadCode(graph);
  const std::shared_ptr<torch::jit::CompilationUnit> unit = optimized._ivalue()->compilation_unit();
  size_t count = 0;
  torch_bridge::replace_regions(graph, [&](const torch_bridge::JitRegion& region) {
    const std::string name = fmt::format("region_{}", count++);
    optimized.register_module(name, torch_bridge::make_region_module(name, region, options, unit));
    torch::jit::Value* part = graph->insertGetAttr(graph->inputs().at(0), name);
    return torch_bridge::insert_region_call(*graph, part, region);
  });
  torch::jit::EliminateDeadCode(graph);
  return optimized;
}

std::string explain(const Module& optimized) {
  std::string text;
  for (const auto& part : optimized.named_children())
    if (torch_bridge::is_region_module(part.value)) text += torch_bridge::describe_region(part.value);
  if (text.empty())
    throw_user_error("explain: expected a module that optimize returned, found one without compiled parts");
  return text;
}

}  // namespace cxxinductor
