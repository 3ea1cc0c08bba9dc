#include "support/fork_locks.h"

#include <pthread.h>

#include <array>

#include "support/error.h"
#include "support/fork_mutex.h"

namespace cxxinductor {
namespace {

constinit std::array<std::mutex, kForkLocks> locks;
constinit ForkChildHook* first_hook = nullptr;  // guarded by ForkLock::Leaf
// One more than the last lock that this thread holds; 0: none.
constinit thread_local uint8_t held = 0;

}  // namespace

struct ForkHandlers {
  static void before() {
    for (std::mutex& lock : locks) lock.lock();
  }
  static void in_parent() {
    for (std::mutex& lock : locks) lock.unlock();
  }
  static void in_child() {
    in_parent();
    for (ForkChildHook* hook = first_hook; hook; hook = hook->next_) hook->run_();
  }
};

namespace {
[[maybe_unused]] const int registered = ::pthread_atfork(&ForkHandlers::before, &ForkHandlers::in_parent, &ForkHandlers::in_child);
}  // namespace

ForkGuard::ForkGuard(ForkLock lock) : lock_(static_cast<uint8_t>(lock)), held_before_(held) {
  CXXI_CHECK(lock_ >= held_before_, "fork lock {} is taken while lock {} is held", lock_, held_before_ - 1);
  locks[lock_].lock();
  held = static_cast<uint8_t>(lock_ + 1);
}

ForkGuard::~ForkGuard() {
  locks[lock_].unlock();
  held = held_before_;
}

void require_no_fork_lock() { CXXI_CHECK(held == 0, "a lock of an object is taken while fork lock {} is held", held - 1); }

ForkChildHook::ForkChildHook(std::function<void()> run) : run_(std::move(run)) {
  const ForkGuard guard(ForkLock::Leaf);
  next_ = first_hook;
  if (next_) next_->previous_ = this;
  first_hook = this;
}

ForkChildHook::~ForkChildHook() {
  const ForkGuard guard(ForkLock::Leaf);
  (previous_ ? previous_->next_ : first_hook) = next_;
  if (next_) next_->previous_ = previous_;
}

}  // namespace cxxinductor
