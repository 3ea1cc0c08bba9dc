#include "runtime/compile_pool.h"

#include <algorithm>
#include <optional>

namespace cxxinductor::runtime {

struct CompilePool::Batch {
  std::vector<CompileTask> tasks;
  std::vector<std::exception_ptr> errors;
  size_t unfinished = 0;  // guarded by the pool's mutex
  std::condition_variable done;
};

CompilePool::CompilePool(int threads) {
  const int wanted = threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  for (int i = 1; i < wanted; ++i) threads_.emplace_back([this] { work_loop(); });
}

CompilePool::~CompilePool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CompilePool::run_entry(const Entry& entry) {
  Batch& batch = *entry.batch;
  try {
    batch.tasks[entry.index].work();
  } catch (...) {
    batch.errors[entry.index] = std::current_exception();
  }
  batch.tasks[entry.index].work = nullptr;  // what the task holds is released before its caller goes on
  std::lock_guard lock(mutex_);
  ++done_;
  if (--batch.unfinished == 0) batch.done.notify_all();
}

CompilePool::Progress CompilePool::progress() const {
  const std::lock_guard lock(mutex_);
  return {next_order_, done_};
}

void CompilePool::work_loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Entry entry = queue_.top();
    queue_.pop();
    lock.unlock();
    run_entry(entry);
    lock.lock();
  }
}

std::vector<CompileFailure> CompilePool::run_all(std::vector<CompileTask> tasks) {
  auto batch = std::make_shared<Batch>();
  batch->errors.resize(tasks.size());
  batch->unfinished = tasks.size();
  batch->tasks = std::move(tasks);
  std::unique_lock lock(mutex_);
  for (size_t i = 0; i < batch->tasks.size(); ++i) queue_.push({batch->tasks[i].cost, next_order_++, batch, i});
  wake_.notify_all();
  while (batch->unfinished > 0) {
    if (queue_.empty()) {
      batch->done.wait(lock, [&] { return batch->unfinished == 0; });
      break;
    }
    const Entry entry = queue_.top();
    queue_.pop();
    lock.unlock();
    run_entry(entry);
    lock.lock();
  }
  std::vector<CompileFailure> failures;
  for (size_t i = 0; i < batch->tasks.size(); ++i) {
    if (batch->errors[i]) failures.push_back({batch->tasks[i].name, batch->errors[i]});
  }
  return failures;
}

}  // namespace cxxinductor::runtime
