#include <cxxinductor/jit.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/freeze_module.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/remove_mutation.h>
#include <torch/csrc/jit/serialization/import.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/write_package.h"
#include "support/error.h"
#include "support/options.h"
#include "torch_bridge/jit/region_module.h"
#include "torch_bridge/jit/regions.h"
#include "torch_bridge/process_check.h"
#include "torch_bridge/providers.h"

namespace cxxinductor {

using torch::jit::Module;

namespace {

void check_can_be_optimized(const Module& module) {
  for (const auto& part : module.named_modules()) {
    if (torch_bridge::is_region_module(part.value)) throw_user_error("optimize: expected a module as it was scripted or traced, found an optimized one");
    if (part.value.hasattr("training") && part.value.is_training())
      throw_user_error("optimize: expected a module in evaluation mode, found {} in training mode: call eval() before",
                       part.name.empty() ? "the module" : part.name);
  }
}

// Methods that no other method calls: forward, and what torch.jit.export marks.
std::vector<std::string> entry_points(const Module& module) {
  std::set<std::string> called;
  std::vector<std::string> names;
  for (const torch::jit::Method& method : module.get_methods()) {
    const std::shared_ptr<torch::jit::Graph> graph = method.graph();
    for (const auto& use : graph->inputs().at(0)->uses())
      if (use.user->kind() == torch::jit::prim::CallMethod && use.offset == 0) called.insert(use.user->s(c10::attr::name));
  }
  for (const torch::jit::Method& method : module.get_methods())
    if (!called.contains(method.name()) || method.name() == "forward") names.push_back(method.name());
  return names;
}

// Numbers go on from method to method: regions are attributes of the module.
void compile_method(Module& optimized, const std::string& name, const Options& options, size_t& count) {
  const std::shared_ptr<torch::jit::Graph> graph = optimized.get_method(name).graph();
  torch::jit::Inline(*graph);
  torch::jit::RemoveTensorMutation(graph);
  torch::jit::EliminateDeadCode(graph);
  const std::shared_ptr<torch::jit::CompilationUnit> unit = optimized._ivalue()->compilation_unit();
  torch_bridge::replace_regions(graph, [&](const torch_bridge::JitRegion& region) {
    std::string part_name = fmt::format("region_{}", count++);
    while (optimized.hasattr(part_name)) part_name += "_";
    optimized.register_module(part_name, torch_bridge::make_region_module(part_name, region, options, unit));
    torch::jit::Value* part = graph->insertGetAttr(graph->inputs().at(0), part_name);
    return torch_bridge::insert_region_call(*graph, part, region);
  });
  torch::jit::EliminateDeadCode(graph);
}

std::vector<Module> regions_of(const Module& optimized, std::string_view caller) {
  std::vector<Module> regions;
  for (const auto& part : optimized.named_children())
    if (torch_bridge::is_region_module(part.value)) regions.push_back(part.value);
  if (regions.empty()) throw_user_error("{}: expected a module that optimize returned, found one without compiled parts", caller);
  return regions;
}

}  // namespace

Module optimize(const Module& module, const Options& options) {
  torch_bridge::check_process();
  check_options(options);
  check_can_be_optimized(module);
  const std::vector<std::string> methods = entry_points(module);
  if (methods.empty()) throw_user_error("optimize: expected a module with methods, found one without");
  std::vector<std::string> others = methods;
  std::erase(others, "forward");
  // Without optimize_numerics: folding batch norms into weights rounds elsewhere.
  Module optimized = torch::jit::freeze_module(module.clone(), others);
  size_t count = 0;
  for (const std::string& name : methods) compile_method(optimized, name, options, count);
  return optimized;
}

void package(const Module& optimized, const std::string& path, const PackageOptions& package_options) {
  torch_bridge::check_process();
  if (package_options.weights_beside) throw_user_error("package: expected weights inside of a TorchScript file, found weights_beside");
  const auto key = api::read_signing_key(package_options.signing_key);
  torch_bridge::wait_for_compiles();
  size_t forms = 0;
  for (const Module& region : regions_of(optimized, "package")) forms += torch_bridge::pack_region(region, package_options.archs, key ? &*key : nullptr);
  if (forms == 0) throw_user_error("package: expected a module that was called, found one of which nothing is compiled");
  try {
    optimized.save(path);
  } catch (const c10::Error& error) {
    throw_user_error("{}: {}", path, error.what_without_backtrace());
  }
}

Module load_module(const std::string& path, const Options& options) {
  torch_bridge::check_process();
  check_options(options);
  const torch_bridge::RegionOptions scope(options);
  return torch::jit::load(path);
}

std::string explain(const Module& optimized) {
  std::string text;
  for (const Module& region : regions_of(optimized, "explain")) text += torch_bridge::describe_region(region);
  std::set<std::string> outside;
  for (const torch::jit::Method& method : optimized.get_methods()) outside.merge(torch_bridge::boundaries_of(*method.graph()));
  if (!outside.empty()) text += fmt::format("runs as TorchScript: {}\n", fmt::join(outside, ", "));
  return text;
}

}  // namespace cxxinductor
