// Makes copies of the graph's own CPU results to a GPU non-blocking.
//
// After a blocking copy torch waits until the stream is idle. For pageable memory that is not needed: the driver has copied the
// bytes when the call returns (CUDA runtime API, "API synchronization behavior"). Results of CPU kernels are in pageable memory.
// Inputs and results of calls may be pinned, so their copies stay as the model has them.
#include "ir/device_types.h"
#include "ir/library_ops.h"
#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;

bool lies_in_pageable_memory(const graph::Graph& graph, ValueId id) {
  while (graph.values[id].producer.valid() && graph::is_view(graph.nodes[graph.values[id].producer].kind))
    id = std::get<ValueId>(graph.nodes[graph.values[id].producer].operands.front());
  const graph::Value& value = graph.values[id];
  return in_host_memory(value.device) && value.producer.valid() && !graph.nodes[value.producer].as<graph::Extern>();
}

}  // namespace

bool unblock_uploads(graph::Graph& graph, const Options&) {
  bool changed = false;
  for (graph::Node& node : graph.nodes) {
    auto* call = std::get_if<graph::Extern>(&node.kind);
    if (!call || !is_call_of(*call, OpFamily::Conversion)) continue;
    const ValueId* source = value_argument(node, ArgRole::Input);
    if (!source || !has_streams(graph.values[node.results.at(0)].device) || !lies_in_pageable_memory(graph, *source)) continue;
    Arg* non_blocking = find_argument(*call, ArgRole::NonBlocking);
    if (non_blocking && *non_blocking == Arg(true)) continue;
    set_argument(*call, ArgRole::NonBlocking, Arg(true));
    changed = true;
  }
  return changed;
}

}  // namespace cxxinductor::passes
