// Threads of this process that compile kernels: longest task first, every task is run, errors are collected.
//
// A pool lives as long as its owner; with no thread at all (threads == 1) the caller does the work itself. run_all may
// be called from several threads at once: each call waits for its own tasks only, and helps while it waits. What nobody waits
// for (run_in_background) has a thread even then, made when it is first needed. Not for:
// work on the hot path of a call (that is Host::parallel_for).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

namespace cxxinductor::runtime {

struct CompileTask {
  std::string name;  // for messages: the kernel or the unit
  double cost = 1;   // any unit; only the order matters
  std::function<void()> work;
};

// One entry a failed task, in the order of the tasks given.
struct CompileFailure {
  std::string name;
  std::exception_ptr error;
};

class CompilePool {
 public:
  explicit CompilePool(int threads);  // 0: one a core
  ~CompilePool();                     // waits for the running tasks, drops nothing that a run_all still waits for
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  // Returns when every task has run.
  std::vector<CompileFailure> run_all(std::vector<CompileTask> tasks);

  // Runs the task on a thread of the pool when nothing is left that a run_all waits for, and returns at once. The task deals
  // with its own errors. `owner` stands for whoever needs the task.
  void run_in_background(const void* owner, CompileTask task);
  // Drops the owner's tasks of run_in_background that have not begun and waits for one that has.
  void cancel(const void* owner);
  // Waits for all tasks of run_in_background.
  void finish();

  int thread_count() const { return threads_for_run_all_; }

  // Tasks given and tasks run since the pool was made, by all callers.
  struct Progress {
    uint64_t given = 0, done = 0;
  };
  Progress progress() const;

 private:
  struct Batch;
  struct Entry {
    double cost;
    uint64_t order;  // earlier submissions first among equal costs
    std::shared_ptr<Batch> batch;
    size_t index;
    bool operator<(const Entry& other) const { return cost != other.cost ? cost < other.cost : order > other.order; }
  };
  struct Later {
    const void* owner;
    CompileTask task;
  };
  void work_loop();
  void run_entry(const Entry& entry);
  void run_next_later(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::priority_queue<Entry> queue_;
  std::deque<Later> later_;
  std::vector<const void*> running_;  // owners of the tasks of run_in_background that have begun
  std::condition_variable idle_;      // one of them has ended
  uint64_t next_order_ = 0, done_ = 0;
  bool stopping_ = false;
  int threads_for_run_all_ = 1;  // with the caller's
  std::vector<std::thread> threads_;
};

}  // namespace cxxinductor::runtime
