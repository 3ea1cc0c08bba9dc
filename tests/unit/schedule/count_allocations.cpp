// Replaces operator new and delete of the test program by ones that count.
#include <atomic>
#include <cstdlib>
#include <new>

#include "unit/schedule/allocations.h"

namespace {
std::atomic<uint64_t> allocations_made{0};

void* counted(std::size_t size, std::size_t alignment) {
  allocations_made.fetch_add(1, std::memory_order_relaxed);
  const std::size_t whole = (size + alignment - 1) / alignment * alignment;
  if (void* memory = std::aligned_alloc(alignment, whole ? whole : alignment)) return memory;
  throw std::bad_alloc();
}
}  // namespace

uint64_t cxxinductor::testing::allocations() { return allocations_made.load(std::memory_order_relaxed); }

void* operator new(std::size_t size) { return counted(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
// What does not throw is replaced too: the sanitizers' own would go with their own delete.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  allocations_made.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size ? size : 1);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void* operator new(std::size_t size, std::align_val_t alignment) { return counted(size, static_cast<std::size_t>(alignment)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
