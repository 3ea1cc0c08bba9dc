// The name of a call of a graph, for those who watch the process: NVTX, and PyTorch's history of CUDA allocations.
#pragma once

#include <optional>

#include "torch_bridge/memory_history.h"
#include "torch_bridge/nvtx.h"

namespace cxxinductor::torch_bridge {

class CompiledGraph;

class CallLabel {
 public:
  struct For {
    bool nvtx = false;
    bool memory_history = false;  // if torch records one now
  };
  CallLabel(const CompiledGraph& graph, For watchers);

 private:
  std::optional<NvtxRange> range_;
  std::optional<AllocationLabel> allocations_;
};

}  // namespace cxxinductor::torch_bridge
