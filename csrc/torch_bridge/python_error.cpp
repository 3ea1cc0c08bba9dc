#include "torch_bridge/python_error.h"

#include <atomic>

namespace cxxinductor::torch_bridge {
namespace {
std::atomic<void (*)()> forget_error{nullptr};
}  // namespace

void forget_python_error() {
  if (void (*forget)() = forget_error.load(std::memory_order_acquire)) forget();
}

void set_forget_python_error(void (*forget)()) { forget_error.store(forget, std::memory_order_release); }

}  // namespace cxxinductor::torch_bridge
