#include "torch_bridge/call_label.h"

#include "torch_bridge/compiled_graph.h"

namespace cxxinductor::torch_bridge {

CallLabel::CallLabel(const CompiledGraph& graph, For watchers) {
  if (watchers.nvtx) range_.emplace("cxxinductor: graph " + graph.name());
  if (watchers.memory_history && records_memory_history()) allocations_.emplace("cxxinductor: graph " + graph.name());
}

}  // namespace cxxinductor::torch_bridge
