// Process-wide locks that are free in a forked child.
//
// A child has one thread: the one that called fork. A lock that another thread held at that moment would stay held in the
// child for ever. So the process-wide locks of this library stand in one table, in the order in which a thread may take them.
// Handlers registered with pthread_atfork take all of them before a fork and release them on both sides. A fork therefore
// waits until no thread is inside a guarded section, and the guarded data is consistent in the child.
//
// Sections must be short, must not call back into Python or torch (the forking thread may hold their locks), and must not
// fork. Sections that cannot keep to this have locks of fork_mutex.h. Data that only threads of the parent could finish (a
// pool's queue) is replaced by a ForkChildHook. Function-local statics with constructors are locks too: use MadeOnce.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace cxxinductor {

// In the order of taking: a thread that holds one takes only later ones.
enum class ForkLock : uint8_t {
  Targets,      // properties of the GPUs
  Services,     // what all compiles share: caches, driver, which NVRTC is asked for
  Kernels,      // kernels that are loaded after a provider was prepared
  Tables,       // import tables and other data made on first use
  Loader,       // opening NVRTC; dlopen and dlclose of compiled units
  Algebra,      // GiNaC
  Expressions,  // the interner of sym::Expr
  Leaf,         // sections that take no other lock: lists, status texts
};
constexpr size_t kForkLocks = static_cast<size_t>(ForkLock::Leaf) + 1;

// Holds a lock of the table for a scope. Taking one out of order is an InternalError.
class ForkGuard {
 public:
  explicit ForkGuard(ForkLock lock);
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

 private:
  uint8_t lock_, held_before_;
};

// Calls `run` in a forked child, on its only thread and with all locks free, as long as the hook lives. It lives on the heap or in static
// memory: new threads of the child get the stacks of the parent's threads.
class ForkChildHook {
 public:
  explicit ForkChildHook(std::function<void()> run);
  ~ForkChildHook();
  ForkChildHook(const ForkChildHook&) = delete;
  ForkChildHook& operator=(const ForkChildHook&) = delete;

 private:
  friend struct ForkHandlers;
  std::function<void()> run_;
  ForkChildHook* previous_ = nullptr;
  ForkChildHook* next_ = nullptr;
};

// An object that is made on first use and never destroyed: threads may use it while the process ends. Declare it constinit.
template <class T, ForkLock lock>
class MadeOnce {
 public:
  template <class Make>  // () -> T
  T& get(Make&& make) {
    if (T* made = made_.load(std::memory_order_acquire)) return *made;
    const ForkGuard guard(lock);
    if (T* made = made_.load(std::memory_order_relaxed)) return *made;
    T* made = new T(make());
    made_.store(made, std::memory_order_release);
    return *made;
  }
  // Null before the first get.
  T* find() const { return made_.load(std::memory_order_acquire); }

 private:
  std::atomic<T*> made_{nullptr};
};

}  // namespace cxxinductor
