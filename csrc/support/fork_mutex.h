// Locks of single objects that are free in a forked child.
//
// They are for sections that have no place in the table of fork_locks.h, because a fork cannot wait for them: they compile, or run code of
// torch and Python, whose locks the forking thread may hold. In the child such a lock is free, whoever held it in the parent. If the forking
// thread did, it still does.
//
// * A thread that holds one may take locks of the table, never the other way round.
// * The child may find data that another thread was changing. So each change is a short section under ForkGuard(ForkLock::Leaf) as well,
//   which a fork waits for: what is stored is made before, and what it replaces is destroyed after. Data that is changed all the time is made
//   anew by `lost` instead.
// * What threads of the parent were to do is not done in the child. A ForkChildHook resets flags that say it is under way.
// * A lock lives on the heap or in static memory, as ForkChildHook does: new threads of the child get the stacks of the parent's threads.
// * A section under a shared lock does not fork.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "support/fork_locks.h"

namespace cxxinductor {

// InternalError where the thread holds a lock of the table.
void require_no_fork_lock();

template <class Mutex>
class BasicForkMutex {
 public:
  // lost: called in a child, before anything else there uses the guarded data, if another thread of the parent held the lock alone.
  explicit BasicForkMutex(std::function<void()> lost = {}) : lost_(std::move(lost)), in_child_([this] { free_in_child(); }) {}

  void lock() {
    require_no_fork_lock();
    mutex_.lock();
    holder_ = std::this_thread::get_id();
  }
  bool try_lock() {
    require_no_fork_lock();
    if (!mutex_.try_lock()) return false;
    holder_ = std::this_thread::get_id();
    return true;
  }
  void unlock() {
    holder_ = std::thread::id();
    mutex_.unlock();
  }
  void lock_shared() {
    require_no_fork_lock();
    mutex_.lock_shared();
  }
  void unlock_shared() { mutex_.unlock_shared(); }

 private:
  void free_in_child() {
    const std::thread::id holder = holder_;
    std::construct_at(&mutex_);  // the old one is not destroyed: it may be held
    if (holder == std::this_thread::get_id()) return mutex_.lock();
    holder_ = std::thread::id();
    if (holder != std::thread::id() && lost_) lost_();
  }

  Mutex mutex_;
  std::atomic<std::thread::id> holder_{};  // none: nobody, or it is held by several
  const std::function<void()> lost_;
  const ForkChildHook in_child_;
};

using ForkMutex = BasicForkMutex<std::mutex>;
using ForkSharedMutex = BasicForkMutex<std::shared_mutex>;

}  // namespace cxxinductor
