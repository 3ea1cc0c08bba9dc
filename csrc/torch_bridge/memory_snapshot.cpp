#include "torch_bridge/memory_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "ir/plan/plan.h"
#include "support/fork_locks.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/folded_constants.h"
#include "torch_bridge/recording_place.h"
#include "torch_bridge/step_ranges.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {
namespace {

constinit MadeOnce<std::set<const CompiledGraph*>, ForkLock::Leaf> made_graphs;

std::set<const CompiledGraph*>& live_graphs() {
  return made_graphs.get([] { return std::set<const CompiledGraph*>(); });
}

std::vector<std::shared_ptr<const CompiledGraph>> graphs_of_now() {
  std::set<const CompiledGraph*>& all = live_graphs();
  std::vector<std::shared_ptr<const CompiledGraph>> found;
  const ForkGuard guard(ForkLock::Leaf);  // `found`, which may be the last owner of a graph, outlives it
  for (const CompiledGraph* graph : all)
    if (auto alive = graph->weak_from_this().lock()) found.push_back(std::move(alive));
  return found;
}

bool writes(const plan::Plan& plan, const plan::Step& step, plan::BufferId buffer) {
  for (const plan::Launch& launch : plan::launches_of(step))
    for (size_t i = 0; i < launch.args.size(); ++i)
      if (launch.args[i] == buffer && plan.kernels[launch.kernel].params[i].written) return true;
  const auto* call = std::get_if<plan::CallExtern>(&step);
  return call && std::ranges::count(call->results, buffer) > 0;
}

std::string origin_of(const plan::Plan& plan, plan::BufferId buffer) {
  for (const plan::Step& step : plan.steps)
    if (writes(plan, step, buffer)) return name_of_step(plan, step);
  return "";
}

class Snapshot {
 public:
  std::vector<HeldMemory> run() {
    for (const auto& graph : graphs_of_now()) add(*graph);
    for (const RecordingSegment& segment : recording_segments()) add(HeldMemory::Kind::Recording, segment);
    for (const RecordingSegment& scratch : recording_scratch()) add(HeldMemory::Kind::Scratch, scratch);
    return std::move(rows_);
  }

 private:
  void add(HeldMemory::Kind kind, const RecordingSegment& memory) { rows_.push_back({kind, "", "", "", memory.device, memory.address, memory.bytes}); }

  void add(const CompiledGraph& graph) {
    seen_.clear();
    const std::vector<at::Tensor> constants = graph.held_tensors();
    const FoldedConstants* folded = graph.constants();
    // They are the last of the caller's inputs, and what is prepared follows them.
    const size_t prepared = folded ? folded->plan().outputs.size() : 0;
    for (size_t i = 0; i < constants.size(); ++i) {
      std::string name = fmt::format("constant {}", i);
      if (const plan::Plan* plan = graph.plan(); plan && plan->inputs.size() >= constants.size() + prepared) {
        const plan::Input& input = plan->inputs[plan->inputs.size() - prepared - constants.size() + i];
        if (input.kind == plan::Input::Kind::Tensor) name = plan->buffers[input.buffer].name;
      }
      add(graph, HeldMemory::Kind::Constant, std::move(name), "", constants[i]);
    }
    if (!folded) return;
    const std::vector<at::Tensor> tensors = folded->tensors();
    for (size_t i = 0; i < tensors.size(); ++i) {
      const plan::BufferId buffer = folded->plan().outputs[i % prepared].buffer;
      add(graph, HeldMemory::Kind::Prepared, folded->plan().buffers[buffer].name, origin_of(folded->plan(), buffer), tensors[i]);
    }
  }

  void add(const CompiledGraph& graph, HeldMemory::Kind kind, std::string name, std::string origin, const at::Tensor& tensor) {
    if (!tensor.has_storage()) return;
    const auto address = reinterpret_cast<uint64_t>(tensor.storage().data());
    if (address == 0 || !seen_.insert(address).second) return;
    rows_.push_back(
        {kind, std::move(name), graph.name(), std::move(origin), from_torch(tensor.device()), address, static_cast<int64_t>(tensor.storage().nbytes())});
  }

  std::set<uint64_t> seen_;  // of one graph
  std::vector<HeldMemory> rows_;
};

}  // namespace

std::string_view to_string(HeldMemory::Kind kind) {
  switch (kind) {
    case HeldMemory::Kind::Constant:
      return "constant";
    case HeldMemory::Kind::Prepared:
      return "prepared";
    case HeldMemory::Kind::Recording:
      return "recording";
    case HeldMemory::Kind::Scratch:
      return "scratch";
  }
  return "";
}

std::vector<HeldMemory> memory_snapshot() { return Snapshot().run(); }

void LiveGraphs::add(const CompiledGraph& graph) {
  std::set<const CompiledGraph*>& all = live_graphs();
  const ForkGuard guard(ForkLock::Leaf);
  all.insert(&graph);
}

void LiveGraphs::remove(const CompiledGraph& graph) {
  std::set<const CompiledGraph*>& all = live_graphs();
  const ForkGuard guard(ForkLock::Leaf);
  all.erase(&graph);
}

}  // namespace cxxinductor::torch_bridge
