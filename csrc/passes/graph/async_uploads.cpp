// Lets copies of what the graph makes on the CPU go to a GPU without a wait for its stream.
//
// After a blocking copy torch waits until the stream has run dry. For pageable memory that is not needed: the driver has
// taken the bytes when the call returns (CUDA runtime API, "API synchronization behavior"). Results of kernels on the CPU lie
// in pageable memory; inputs and results of calls may be pinned, and keep what the model asked for.
#include <algorithm>

#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;

bool lies_in_pageable_memory(const graph::Graph& graph, ValueId id) {
  while (graph.values[id].producer.valid() && graph::is_view(graph.nodes[graph.values[id].producer].kind))
    id = std::get<ValueId>(graph.nodes[graph.values[id].producer].operands.front());
  const graph::Value& value = graph.values[id];
  return value.device.type == DeviceType::Cpu && value.producer.valid() &&
         !graph.nodes[value.producer].as<graph::Extern>();
}

}  // namespace

bool unblock_uploads(graph::Graph& graph, const Options&) {
  bool changed = false;
  for (graph::Node& node : graph.nodes) {
    auto* call = std::get_if<graph::Extern>(&node.kind);
    if (!call || call->callee != "aten::_to_copy" || node.operands.empty()) continue;
    const auto* source = std::get_if<ValueId>(&node.operands.front());
    if (!source || graph.values[node.results.at(0)].device.type != DeviceType::Cuda ||
        !lies_in_pageable_memory(graph, *source))
      continue;
    const auto found = std::ranges::find(call->kwargs, "non_blocking", [](const auto& kwarg) { return kwarg.first; });
    Arg& non_blocking = found == call->kwargs.end() ? call->kwargs.emplace_back("non_blocking", Arg(false)).second
                                                    : found->second;
    if (non_blocking == Arg(true)) continue;
    non_blocking = Arg(true);
    changed = true;
  }
  return changed;
}

}  // namespace cxxinductor::passes
