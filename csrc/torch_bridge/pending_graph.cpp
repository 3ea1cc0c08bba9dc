#include "torch_bridge/pending_graph.h"

#include <chrono>
#include <thread>
#include <utility>

#include "torch_bridge/providers.h"

namespace cxxinductor::torch_bridge {

PendingGraph::PendingGraph(model::CallGraph calls, const std::vector<at::Tensor>& constants, const CompileSettings& settings, const Options& options)
    : calls_(std::move(calls)),
      constants_(constants),
      settings_(settings),
      options_(options),
      uncompiled_(CompiledGraph::through_aten(calls_, options)),
      in_child_([this] {  // whoever was to compile it is not here
        if (stage_ != Stage::Ended) stage_ = Stage::New;
      }) {
  uncompiled_->set_constants(constants_);
  count_background_compile();
  enqueue();
}

PendingGraph::~PendingGraph() { graph_compiles(options_).cancel(this); }

bool PendingGraph::has_ended() const { return stage_.load(std::memory_order_acquire) == Stage::Ended; }

bool PendingGraph::begin(Stage from) { return stage_.compare_exchange_strong(from, Stage::Running); }

void PendingGraph::enqueue() {
  Stage expected = Stage::New;
  if (!stage_.compare_exchange_strong(expected, Stage::Queued)) return;
  graph_compiles(options_).run_in_background(this, {calls_.name, 1, [this](const InterruptCheck& interrupted) {
                                                      try {
                                                        if (begin(Stage::Queued)) compile(interrupted);
                                                      } catch (const Interrupted&) {  // the graph or the process ends
                                                      }
                                                    }});
}

// Of the thread that has begun it.
void PendingGraph::compile(const InterruptCheck& interrupted) {
  std::shared_ptr<CompiledGraph> compiled;
  std::exception_ptr error;
  try {
    compiled = CompiledGraph::from_calls(calls_, settings_, options_, interrupted);
    compiled->set_constants(constants_);
  } catch (const Interrupted&) {
    stage_ = Stage::New;
    throw;
  } catch (...) {
    error = std::current_exception();
  }
  const ForkGuard guard(ForkLock::Leaf);  // a child finds all of this or nothing
  compiled_ = std::move(compiled);
  error_ = std::move(error);
  stage_.store(Stage::Ended, std::memory_order_release);
}

std::shared_ptr<CompiledGraph> PendingGraph::get(const InterruptCheck& interrupted) {
  constexpr std::chrono::milliseconds poll(1);  // a condition variable would not outlive a fork
  constexpr int polls_per_check = 20;
  for (int polls = 0; !has_ended(); ++polls) {
    if (begin(Stage::New) || begin(Stage::Queued)) {
      compile(interrupted);
      break;
    }
    if (polls % polls_per_check == 0) stop_if(interrupted);
    std::this_thread::sleep_for(poll);
  }
  if (error_) std::rethrow_exception(error_);
  return compiled_;
}

std::vector<c10::IValue> PendingGraph::run(std::vector<c10::IValue> inputs) {
  enqueue();
  count_background_call();
  return uncompiled_->run(std::move(inputs));
}

}  // namespace cxxinductor::torch_bridge
