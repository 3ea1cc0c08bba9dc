// Memory that compiled graphs hold between calls: what PyTorch's snapshots show as blocks without a name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/dtype.h"

namespace cxxinductor::torch_bridge {

class CompiledGraph;

struct HeldMemory {
  // constant: a tensor of the model that the graph holds. prepared: computed once from such and parameters (option freezing).
  // recording: a segment that library calls use in replays of CUDA graphs. scratch: memory that replays on a stream use one after the
  // other, for the life of the process. Both are of all graphs together.
  enum class Kind : uint8_t { Constant, Prepared, Recording, Scratch };
  Kind kind = Kind::Constant;
  std::string name;    // of the buffer in the plan; "" for recordings and scratch memory
  std::string graph;   // likewise
  std::string origin;  // of what is prepared: the kernel, or the call and the model's module, that makes it
  Device device;
  uint64_t address = 0;  // of the allocation
  int64_t bytes = 0;     // of the allocation, as asked for
};
std::string_view to_string(HeldMemory::Kind kind);

// Each allocation once per graph that holds it, in no order. Memory of running calls is not among them. Thread-safe.
std::vector<HeldMemory> memory_snapshot();

// All compiled graphs of the process. Thread-safe.
class LiveGraphs {
 public:
  static void add(const CompiledGraph& graph);
  static void remove(const CompiledGraph& graph);  // before any part of it goes
};

}  // namespace cxxinductor::torch_bridge
