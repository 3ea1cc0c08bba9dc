// The memory of one call's own bookkeeping: one block, sized before the call from the executable's tables, on the stack
// while it is small. Pieces are handed out in order and released together; only trivially destructible types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "support/error.h"

namespace cxxinductor::runtime {

class CallMemory {
 public:
  explicit CallMemory(size_t bytes) : size_(bytes) {
    if (bytes > sizeof inline_) heap_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    base_ = heap_ ? heap_.get() : inline_;
  }
  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;

  template <class T>
  static constexpr size_t bytes_for(size_t count) {
    return (count * sizeof(T) + 15) / 16 * 16;
  }
  template <class T>
  std::span<T> take(size_t count) {
    static_assert(alignof(T) <= 16 && std::is_trivially_destructible_v<T>);
    const size_t at = used_;
    used_ += bytes_for<T>(count);
    CXXI_CHECK(used_ <= size_, "the call needs more than the {} bytes that were foreseen", size_);
    T* first = reinterpret_cast<T*>(base_ + at);
    for (size_t i = 0; i < count; ++i) new (first + i) T();
    return {first, count};
  }

 private:
  alignas(16) std::byte inline_[6144];
  std::unique_ptr<std::byte[]> heap_;
  std::byte* base_;
  size_t size_;
  size_t used_ = 0;
};

}  // namespace cxxinductor::runtime
