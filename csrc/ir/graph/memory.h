// Peak memory of a graph whose nodes run one by one, as eager runs calls: the measure for plans of graphs that come as text.
// Graphs of models are measured by their calls (model/eager_memory.h), which allocate less: one call may be many nodes.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ir/graph/graph.h"

namespace cxxinductor::graph {

// Each node allocates its results, views none; a value dies after its last use; inputs count while they live if the
// caller gives them up. Of each device that values are on; workspaces left out.
std::map<Device, int64_t> eager_peaks(const Graph& graph);

struct MemoryUse {
  std::vector<int64_t> at;  // bytes while each node runs
  int64_t peak = 0;
};
std::map<Device, MemoryUse> eager_memory(const Graph& graph);

}  // namespace cxxinductor::graph
