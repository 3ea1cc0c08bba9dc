// A graph that a thread in the background compiles, from the moment it is made. Until that has ended calls run through ATen, or wait.
//
// The thread is one of graph_compiles(). Whoever waits for a compile that has not begun does it himself. In a forked child, where the
// thread is not, the compile begins anew with the next call.
#pragma once

#include <ATen/core/ivalue.h>

#include <atomic>
#include <exception>
#include <memory>
#include <vector>

#include "model/call_graph.h"
#include "support/fork_locks.h"
#include "support/interrupt.h"
#include "support/options.h"
#include "torch_bridge/compile_settings.h"
#include "torch_bridge/compiled_graph.h"

namespace cxxinductor::torch_bridge {

class PendingGraph {
 public:
  // constants: as in CompiledGraph::set_constants. settings: as in CompiledGraph::from_calls.
  // Unsupported where ATen cannot run the calls either.
  PendingGraph(model::CallGraph calls, const std::vector<at::Tensor>& constants, const CompileSettings& settings, const Options& options);
  // A compile that has begun is interrupted.
  ~PendingGraph();
  PendingGraph(const PendingGraph&) = delete;
  PendingGraph& operator=(const PendingGraph&) = delete;

  bool has_ended() const;
  // Waits. The result is that of CompiledGraph::from_calls, which may have thrown. Interrupted when the check says so, which leaves the
  // compile to go on. The same graph each time; thread-safe.
  std::shared_ptr<CompiledGraph> get(const InterruptCheck& interrupted);
  // A call without it: as CompiledGraph::run of a graph that falls back. Counted as a background call. Thread-safe.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs);

 private:
  enum class Stage { New, Queued, Running, Ended };
  void enqueue();
  bool begin(Stage from);
  void compile(const InterruptCheck& interrupted);

  const model::CallGraph calls_;
  const std::vector<at::Tensor> constants_;
  const CompileSettings settings_;
  const Options options_;
  const std::shared_ptr<CompiledGraph> uncompiled_;
  std::atomic<Stage> stage_ = Stage::New;
  std::shared_ptr<CompiledGraph> compiled_;  // this and error_: set once, before Ended
  std::exception_ptr error_;
  const ForkChildHook in_child_;
};

}  // namespace cxxinductor::torch_bridge
