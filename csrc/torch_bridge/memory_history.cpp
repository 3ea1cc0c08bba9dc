#include "torch_bridge/memory_history.h"

#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)
#include "torch_bridge/cuda_allocator.h"

namespace cxxinductor::torch_bridge {

// Other allocators throw where they are asked.
bool records_memory_history() { return cuda_allocator()->name() == "native" && cuda_allocator()->isHistoryEnabled(); }

AllocationLabel::AllocationLabel(const std::string& text) : previous_(cuda_allocator()->getUserMetadata()) { cuda_allocator()->setUserMetadata(text); }
AllocationLabel::~AllocationLabel() { cuda_allocator()->setUserMetadata(previous_); }

}  // namespace cxxinductor::torch_bridge

#else
namespace cxxinductor::torch_bridge {
bool records_memory_history() { return false; }
AllocationLabel::AllocationLabel(const std::string&) {}
AllocationLabel::~AllocationLabel() = default;
}  // namespace cxxinductor::torch_bridge
#endif
