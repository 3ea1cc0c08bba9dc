// A compiled graph on torch's tensors: what torch.compile's callable and the C++ door both hold.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver/compile.h"
#include "driver/summary.h"
#include "model/call_graph.h"
#include "model/size_guards.h"
#include "runtime/packaged_code.h"
#include "support/interrupt.h"
#include "support/options.h"
#include "torch_bridge/compile_settings.h"
#include "torch_bridge/counters.h"

namespace cxxinductor::torch_bridge {

class FoldedConstants;

// A plan with its machine code, read back from a package.
struct PackagedPlan {
  std::string plan;  // text
  Targets targets;
  runtime::PackagedCode code;
  bool needs_calls = false;  // as in package_file::BuiltPlan
};

// A run of a compiled graph in parts, of which the first begin before all inputs are known. Destroying it drops it; what its steps
// wrote to inputs stays.
class PartialRun {
 public:
  virtual ~PartialRun() = default;
  // A tensor or a float that was not known when the run began; before the first step that uses it.
  virtual void supply(size_t input, c10::IValue value) = 0;
  // Runs the plan's steps before `end` that have not run. Errors are those of CompiledGraph::run.
  virtual void advance(size_t end) = 0;
  // Runs the others. inputs: all of the graph's, those that were supplied too. Once.
  virtual std::vector<c10::IValue> finish(std::vector<c10::IValue> inputs) = 0;
};

class CompiledGraph : public std::enable_shared_from_this<CompiledGraph> {
 public:
  // A graph that we cannot compile runs through the ATen executor; fallback_reason() then says why, and names a folder
  // that shows the bug if it is one of ours. Unsupported when even the ATen executor cannot run it.
  // Interrupted when the check says so.
  // settings: of the calls of the graph; no other calls may be made of it. Not counted before count().
  static std::shared_ptr<CompiledGraph> from_calls(model::CallGraph calls, const CompileSettings& settings, const Options& options,
                                                   const InterruptCheck& interrupted = {});
  // From the calls of a file, which is untrusted: frontend/check_calls.h and option allow_ops say what it may call, else it throws.
  // Falls back as from_calls does. hints: sizes that the result holds for, see guards().
  static std::shared_ptr<CompiledGraph> from_file(model::CallGraph calls, const CompileSettings& settings, const Options& options,
                                                  const InterruptCheck& interrupted = {}, model::SizeHints hints = {});
  // The same, run op by op through ATen and not compiled, which is no fallback that counts.
  static std::shared_ptr<CompiledGraph> uncompiled(model::CallGraph calls, const Options& options);
  // The same of calls as in from_calls.
  static std::shared_ptr<CompiledGraph> through_aten(model::CallGraph calls, const Options& options);
  // From a plan that package_calls made of the same calls, on targets that this machine runs; its code is used where it is there, the rest is
  // compiled. The plan is trusted, as in from_plan. There is nothing to fall back to: whatever fails throws.
  static std::shared_ptr<CompiledGraph> from_package(const model::CallGraph& calls, const PackagedPlan& packaged, const Options& options);
  // The same for calls that were recorded of a function, and a plan that package_trace made of them.
  static std::shared_ptr<CompiledGraph> from_packaged_trace(const model::CallGraph& calls, const PackagedPlan& packaged, const Options& options);
  // From calls that were recorded of a function (record/trace.h): they may write to tensors. Inputs are the caller's to check.
  // late_inputs: as in driver::Request.
  static std::shared_ptr<CompiledGraph> from_trace(model::CallGraph calls, const CompileSettings& settings, const Options& options,
                                                   const InterruptCheck& interrupted = {}, std::vector<uint32_t> late_inputs = {});
  // From graph text (docs/ir.md), which is untrusted: the same holds, but there is nothing to fall back to: whatever fails throws.
  static std::shared_ptr<CompiledGraph> from_text(std::string_view text, const Options& options);
  // From the text of a plan, which is verified, but not for memory safety: nothing proves that kernels access elements
  // inside their buffers. The plan must come from someone the caller trusts. source: as in make_provider.
  static std::shared_ptr<CompiledGraph> from_plan(std::string_view text, const std::optional<std::string>& source, const Options& options);
  ~CompiledGraph();

  // inputs: tensors and ints, in the order of the graph's inputs; each is released after its last use. Thread-safe.
  // Throws UserError where an input is not what the graph declares (not for from_calls: torch.compile's guards have checked
  // those), Error when a kernel cannot be launched, KernelMismatch when the check option finds one.
  // An exception of torch's or of a custom op's leaves it unchanged; written, where given, then gets the names of inputs
  // that had been written.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs, std::string* written = nullptr) const;
  // run() in parts, on the streams that are current now. known: by input; the others are tensors without memory, of the sizes that
  // will be supplied. Null where this graph is run as a whole alone: its plan() is null, its inputs are converted, something checks it,
  // or a CUDA graph captures it.
  std::unique_ptr<PartialRun> begin(std::vector<c10::IValue> inputs, std::vector<bool> known) const;
  // Tensors that the graph held itself, the last of its inputs: run adds them. Before the first call.
  void set_constants(std::vector<at::Tensor> constants);

  // Adds the graph to the counters. Of from_calls, whose graph may be compiled before any call wants it; once.
  void count() const;

  const std::string& name() const;
  const std::string& fallback_reason() const;  // "" when compiled
  // Of graphs from files: on symbols of the inputs, the caller's to check. Where one does not hold, the graph computes something else.
  std::span<const model::SizeGuard> guards() const;
  const driver::Report& report() const;
  bool writes_input(uint32_t position) const;    // of graphs from files
  const plan::Plan* plan() const;                // null for a fallback
  std::vector<at::Tensor> held_tensors() const;  // those of set_constants
  const FoldedConstants* constants() const;      // null where option freezing found nothing to prepare, or is off
  driver::GraphSummary summary() const;          // empty for a fallback
  std::optional<driver::ConstSummary> const_summary() const;
  // What became of the graph, for people; title and before as in driver/summary.h.
  std::string describe(std::string_view title, std::span<const driver::StageTime> before = {}) const;
  // Lines about what the check option did not check so far, each once; empties the list. Thread-safe.
  std::vector<std::string> take_check_notes() const;

 private:
  struct Impl;
  class RunInParts;
  explicit CompiledGraph(std::unique_ptr<Impl> impl);
  // Whether a CUDA graph of the caller's captures this call; then the graph stays loaded.
  bool stay_if_captured() const;
  std::unique_ptr<Impl> impl_;
};

// The plan of a file's calls for these targets, which need not be machines at hand, and all its machine code.
struct PlanForPackage {
  std::string plan;
  runtime::CodeByHash code;
  std::vector<driver::Report::KernelSource> sources;
  bool needs_calls = false;  // as in package_file::BuiltPlan
};
// Unsupported and UserError as from_file, where it would fall back, too.
PlanForPackage package_calls(const model::CallGraph& calls, const Targets& targets, const Options& options);
// Of calls that were recorded of a function.
PlanForPackage package_trace(const model::CallGraph& calls, const Targets& targets, const Options& options);

// The forms that the calls take for these targets, which need not be machines at hand: nothing is compiled or run.
driver::Report plan_calls(model::CallGraph calls, const Targets& targets, const Options& options);

}  // namespace cxxinductor::torch_bridge
