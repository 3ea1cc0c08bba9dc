// The subcommands on TorchScript files: modules that were scripted or traced, and those that `compile` made of them.
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <cxxinductor/jit.h>
#include <torch/csrc/jit/passes/inliner.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <set>

#include "cli/bench.h"
#include "cli/compare.h"
#include "cli/inputs.h"
#include "cli/quiet.h"
#include "readers/pt2/printable.h"
#include "support/error.h"
#include "torch_bridge/jit/region_module.h"
#include "torch_bridge/types.h"

namespace cxxinductor::cli {

// Every such file has this entry in its folder; the directory is at the end.
bool is_torchscript(const std::string& path) {
  constexpr size_t most_searched = size_t{16} << 20;
  constexpr std::string_view directory_record = "PK\1\2", code_entry = "/constants.pkl", exported_entry = "/archive_format";
  const api::Bytes file = api::map_file(path);
  const std::string_view all(reinterpret_cast<const char*>(file.span.data()), file.span.size());
  const std::string_view end = all.substr(all.size() - std::min(all.size(), most_searched));
  return end.find(directory_record) != end.npos && end.find(code_entry) != end.npos && end.find(exported_entry) == end.npos;
}

namespace torchscript {
namespace {

using torch::jit::Module;

bool is_optimized(const Module& module) {
  for (const auto& part : module.named_children())
    if (torch_bridge::is_region_module(part.value)) return true;
  return false;
}

Module read(const std::string& path, const Options& options) {
  try {
    Module module = load_module(path, options);
    module.eval();
    return module;
  } catch (const c10::Error& error) {
    throw_user_error("{}: expected a file of torch.jit.save: {}", path, readers::printable(error.what_without_backtrace()));
  }
}

// As it is where it was optimized before.
Module read_compiled(const Arguments& arguments) {
  const Options options = library_options(arguments);
  const Module module = read(arguments.file, options);
  return is_optimized(module) ? module : optimize(module, options);
}

// Op by op: TorchScript's own interpreter, or of a module that was optimized the ATen tier.
Module read_reference(const Arguments& arguments) {
  Options options = library_options(arguments);
  options.tier = "aten";
  options.dump.clear();
  return read(arguments.file, options);
}

Inputs inputs_of(const Arguments& arguments) {
  if (!arguments.sizes.empty()) throw_user_error("--size: TorchScript files have no symbols; expected --input for each argument");
  if (!arguments.inputs.empty()) {
    if (!arguments.shapes.empty()) throw_user_error("--inputs: expected no --input beside it");
    return {read_files(arguments.inputs), "of " + arguments.inputs.front()};
  }
  if (arguments.shapes.empty())
    throw_user_error(
        "{}: TorchScript files do not say which sizes their inputs have: expected --input \"f32[1, 3, 224, 224]\" for each argument of "
        "forward, or --inputs FILE",
        arguments.file);
  at::manual_seed(static_cast<uint64_t>(arguments.seed));
  Inputs inputs{{}, "random, seed " + std::to_string(arguments.seed)};
  for (const std::string& text : arguments.shapes) inputs.values.push_back(make_random_input(text));
  return inputs;
}

void print(const Inputs& inputs) {
  std::cout << "inputs: " << inputs.origin << "\n";
  for (const c10::IValue& input : inputs.values) std::cout << "  " << value_text(input) << "\n";
}

void add_leaves(const c10::IValue& value, std::vector<c10::IValue>& leaves) {
  if (value.isTuple())
    for (const c10::IValue& item : value.toTupleRef().elements()) add_leaves(item, leaves);
  else if (value.isList())
    for (const c10::IValue& item : value.toListRef()) add_leaves(item, leaves);
  else if (value.isGenericDict())
    for (const auto& item : value.toGenericDict()) add_leaves(item.value(), leaves);
  else
    leaves.push_back(value);
}

// The leaves of forward's result. A call leaves its inputs as they were.
std::vector<c10::IValue> call(Module& module, const std::vector<c10::IValue>& inputs) {
  const at::NoGradGuard no_gradients;
  std::vector<c10::IValue> leaves;
  add_leaves(module.forward(copies(inputs)), leaves);
  return leaves;
}

std::vector<int> gpus_of(const std::vector<c10::IValue>& values) {
  std::set<int> gpus;
  for (const c10::IValue& value : values)
    if (value.isTensor() && value.toTensor().is_cuda()) gpus.insert(value.toTensor().get_device());
  return {gpus.begin(), gpus.end()};
}

void print_tensors(std::string_view title, const std::map<std::string, at::Tensor>& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  std::cout << fmt::format("\n{}: {}, {}\n", title, tensors.size(), size_text(bytes));
  for (const auto& [name, tensor] : tensors) std::cout << "  " << readers::printable(name) << ": " << value_text(tensor) << "\n";
}

void print_ops(const torch::jit::Graph& graph) {
  std::map<std::string, int64_t> counts;
  int64_t calls = 0;
  const auto visit = [&](const auto& self, const torch::jit::Block* block) -> void {
    for (const torch::jit::Node* node : block->nodes()) {
      if (node->kind() != torch::jit::prim::Constant && node->kind() != torch::jit::prim::GetAttr) {
        ++counts[node->kind().toQualString()];
        ++calls;
      }
      for (const torch::jit::Block* inner : node->blocks()) self(self, inner);
    }
  };
  visit(visit, graph.block());
  std::cout << fmt::format("\nops: {} nodes of {} kinds\n", calls, counts.size());
  for (const auto& [op, count] : counts) std::cout << fmt::format("  {:5} x {}\n", count, readers::printable(op));
}

}  // namespace

int inspect(const Arguments& arguments) {
  const Module module = read(arguments.file, Options());
  std::cout << "TorchScript module '" << readers::printable(module.type()->name()->name()) << "'" << (is_optimized(module) ? ", optimized by cxxinductor" : "")
            << "\n\nmethods\n";
  for (const torch::jit::Method& method : module.get_methods()) std::cout << "  " << readers::printable(c10::str(method.function().getSchema())) << "\n";
  std::map<std::string, at::Tensor> tensors;
  for (const auto& parameter : module.named_parameters()) tensors.emplace(parameter.name, parameter.value);
  for (const auto& buffer : module.named_buffers()) tensors.emplace(buffer.name, buffer.value);
  print_tensors("weights", tensors);
  if (module.find_method("forward")) {
    const auto graph = module.get_method("forward").graph()->copy();
    torch::jit::Inline(*graph);
    print_ops(*graph);
  }
  for (const auto& part : module.named_children())
    if (torch_bridge::is_region_module(part.value)) std::cout << "\n" << readers::printable(part.name) << "\n" << torch_bridge::list_saved_forms(part.value);
  return success;
}

int explain(const Arguments& arguments) {
  Module module = read_compiled(arguments);
  const Inputs inputs = inputs_of(arguments);
  (void)call(module, inputs.values);
  std::cout << cxxinductor::explain(module) << std::flush;
  return success;
}

int run(const Arguments& arguments) {
  Module module = read_compiled(arguments);
  const Inputs inputs = inputs_of(arguments);
  print(inputs);
  print_outputs(call(module, inputs.values), arguments);
  return success;
}

int verify(const Arguments& arguments) {
  Module reference = read_reference(arguments), module = read_compiled(arguments);
  const Inputs inputs = inputs_of(arguments);
  print(inputs);
  const auto seeded_call = [&](Module& of) {
    at::manual_seed(0);  // for models that draw random numbers
    return call(of, inputs.values);
  };
  const std::vector<c10::IValue> expected = seeded_call(reference);
  torch_bridge::reset_counters();
  const std::vector<c10::IValue> found = seeded_call(module);
  bool all = expected.size() == found.size();
  if (!all) std::cout << fmt::format("  DIFFERS: expected {} results, found {}\n", expected.size(), found.size());
  for (size_t i = 0; i < std::min(expected.size(), found.size()); ++i) all &= agree(fmt::format("output {}", i), expected[i], found[i], arguments.tolerance);
  print_verdict(torch_bridge::read_counters(), all);
  return all ? success : failure;
}

int bench(const Arguments& arguments) {
  check_samples(arguments);
  using Clock = std::chrono::steady_clock;
  Module reference = read_reference(arguments);
  const Clock::time_point start = Clock::now();
  Module module = read_compiled(arguments);
  const Inputs inputs = inputs_of(arguments);
  (void)call(module, inputs.values);
  const double load_time = std::chrono::duration<double>(Clock::now() - start).count();
  print(inputs);
  const auto timed = [&inputs](Module& of) {
    return [&of, &inputs] {
      const at::NoGradGuard no_gradients;
      (void)of.forward(inputs.values);
    };
  };
  compare_times(timed(reference), timed(module), gpus_of(inputs.values), load_time, arguments.samples);
  return success;
}

int compile(const Arguments& arguments) {
  Module module = read_compiled(arguments);
  const Inputs inputs = inputs_of(arguments);
  (void)call(module, inputs.values);
  package(module, arguments.package, {arguments.archs, arguments.weights == "beside", arguments.signing_key});
  std::cout << arguments.package << ": " << size_text(static_cast<int64_t>(api::map_file(arguments.package).span.size())) << "\n";
  for (const auto& part : read(arguments.package, Options()).named_children())
    if (torch_bridge::is_region_module(part.value)) std::cout << part.name << "\n" << torch_bridge::list_saved_forms(part.value);
  return success;
}

}  // namespace torchscript
}  // namespace cxxinductor::cli
