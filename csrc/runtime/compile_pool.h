// Threads of this process that compile kernels: longest task first, every task is run, errors are collected.
//
// Threads start when there is work for them. If the system starts fewer than requested, fewer work; without any, the caller
// does the work itself. run_all may be called from several threads at once: each call waits for its own tasks only.
// Background tasks (run_in_background) never take the last thread from tasks that a call waits for. A forked child has a pool
// without threads or tasks, which starts its own. Not for work on the path of a call (that is Host::parallel_for).
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/fork_locks.h"
#include "support/interrupt.h"

namespace cxxinductor::runtime {

struct CompileTask {
  std::string name;  // for messages: the kernel or the unit
  double cost = 1;   // any unit; only the order matters
  // Long work asks the check now and then, and throws Interrupted when it says so.
  std::function<void(const InterruptCheck&)> work;
};

// One entry per failed task, in the order of the tasks given.
struct CompileFailure {
  std::string name;
  std::exception_ptr error;
};

// What a thread that waits for background tasks does around the wait. The Python module's gives up the GIL: tasks may wait for threads of Python,
// and objects that cancel their tasks are destroyed by threads that hold it. It is not for run_all, whose callers may hold locks.
using AroundWait = void (*)(const std::function<void()>& wait);
void set_around_wait(AroundWait around);

class CompilePool {
 public:
  explicit CompilePool(int threads);  // that work for run_all at the same time; 0: one per core
  ~CompilePool();                     // as stop
  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  // Returns when every task has run. Throws Interrupted when `interrupted` said so: tasks that had not begun are dropped,
  // those that had have ended.
  std::vector<CompileFailure> run_all(std::vector<CompileTask> tasks, const InterruptCheck& interrupted = {});

  // Runs the task on a thread of the pool once no task of run_all is left, and returns at once. The task handles its own
  // errors. `owner` identifies the user of the task.
  void run_in_background(const void* owner, CompileTask task);
  // Drops the owner's tasks of run_in_background that have not begun, interrupts one that has and waits for it.
  void cancel(const void* owner);
  // Waits for all tasks of run_in_background.
  void finish();
  // Drops the tasks of run_in_background, interrupts all that runs and ends the threads. Later calls do their work themselves, and
  // drop background tasks. For the end of the process: before libraries that tasks use are torn down.
  void stop();

  int thread_count() const { return threads_; }

  // Tasks given and tasks run since the pool was made, by all callers.
  struct Progress {
    uint64_t given = 0, done = 0;
  };
  Progress progress() const;

 private:
  struct Batch;
  struct State;

  const int threads_;
  std::unique_ptr<State> state_;  // replaced in a forked child
  ForkChildHook in_child_;
};

}  // namespace cxxinductor::runtime
