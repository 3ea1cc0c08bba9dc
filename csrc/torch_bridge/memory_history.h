// Names for allocations in PyTorch's own memory snapshots (torch.cuda.memory), whose stacks of Python end at a compiled call.
#pragma once

#include <optional>
#include <string>

namespace cxxinductor::torch_bridge {

// Whether torch records the history of CUDA allocations. False where this LibTorch has no CUDA allocator of its own.
bool records_memory_history();

// While it lives, allocations of this thread carry the text as their user metadata. Only while records_memory_history().
class AllocationLabel {
 public:
  explicit AllocationLabel(const std::string& text);
  ~AllocationLabel();
  AllocationLabel(const AllocationLabel&) = delete;
  AllocationLabel& operator=(const AllocationLabel&) = delete;

 private:
  std::string previous_;
};

}  // namespace cxxinductor::torch_bridge
