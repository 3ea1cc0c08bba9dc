// The calls of a file, compiled. Where they depend on sizes beyond the ranges of symbols (model/size_guards.h), they are compiled
// again for sizes of which the conditions that the first form met have other outcomes. Control flow runs compiled subgraphs.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/call_graph.h"
#include "support/interrupt.h"
#include "support/options.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/input_symbols.h"

namespace cxxinductor::torch_bridge {

struct PackagedPlans;

class FileModel {
 public:
  // Throws and falls back as CompiledGraph::from_file.
  static std::shared_ptr<const FileModel> compile(const model::CallGraph& calls, const Options& options, const InterruptCheck& interrupted = {});
  // The same, run op by op through ATen, which is no fallback that counts.
  static std::shared_ptr<const FileModel> uncompiled(const model::CallGraph& calls, const Options& options);
  // Of the same calls that package_model had. Whatever fails throws.
  static std::shared_ptr<const FileModel> from_package(const model::CallGraph& calls, const PackagedPlans& plans, const Options& options);
  ~FileModel();  // drops what is being compiled

  // As CompiledGraph::run; inputs are checked. Thread-safe.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs) const;

  bool writes_input(uint32_t position) const;
  std::string fallback_reason() const;  // of the first form, "" when compiled
  std::string describe(std::string_view title) const;

 private:
  class Forms;
  FileModel(model::CallGraph calls, std::vector<std::shared_ptr<const FileModel>> subgraphs, const Options& options, bool compiled,
            const InterruptCheck& interrupted);
  FileModel(std::shared_ptr<const CompiledGraph> graph, const model::CallGraph& calls, std::vector<std::shared_ptr<const FileModel>> subgraphs,
            const Options& options);
  static std::shared_ptr<const FileModel> make(const model::CallGraph& calls, const Options& options, bool compiled, const InterruptCheck& interrupted);

  std::string name_;
  InputSymbols symbols_;  // of what is given to run
  std::shared_ptr<const CompiledGraph> first_;
  std::vector<uint32_t> written_;  // inputs that it writes to
  std::unique_ptr<Forms> forms_;   // first_, and others for where it does not hold; null: it runs through ATen anyway
  std::vector<std::shared_ptr<const FileModel>> subgraphs_;
};

// Plans of a file's calls, and of the subgraphs of control flow in them, in the order of with_functions. Throws as package_calls.
std::vector<PlanForPackage> package_model(const model::CallGraph& calls, const Targets& targets, const Options& options);

}  // namespace cxxinductor::torch_bridge
