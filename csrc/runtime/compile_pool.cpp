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
  threads_for_run_all_ = wanted;
  for (int i = 1; i < wanted; ++i) threads_.emplace_back([this] { work_loop(); });
}

CompilePool::~CompilePool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    later_.clear();
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
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty() || !later_.empty(); });
    if (queue_.empty() && later_.empty()) return;
    if (queue_.empty()) {
      run_next_later(lock);
      continue;
    }
    const Entry entry = queue_.top();
    queue_.pop();
    lock.unlock();
    run_entry(entry);
    lock.lock();
  }
}

void CompilePool::run_next_later(std::unique_lock<std::mutex>& lock) {
  Later next = std::move(later_.front());
  later_.pop_front();
  running_.push_back(next.owner);
  lock.unlock();
  next.task.work();
  next.task.work = nullptr;
  lock.lock();
  running_.erase(std::find(running_.begin(), running_.end(), next.owner));
  ++done_;
  idle_.notify_all();
}

void CompilePool::run_in_background(const void* owner, CompileTask task) {
  const std::lock_guard lock(mutex_);
  if (threads_.empty()) threads_.emplace_back([this] { work_loop(); });
  later_.push_back({owner, std::move(task)});
  ++next_order_;
  wake_.notify_one();
}

void CompilePool::cancel(const void* owner) {
  std::unique_lock lock(mutex_);
  done_ += std::erase_if(later_, [owner](const Later& later) { return later.owner == owner; });
  idle_.notify_all();
  idle_.wait(lock, [&] { return std::find(running_.begin(), running_.end(), owner) == running_.end(); });
}

void CompilePool::finish() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return later_.empty() && running_.empty(); });
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
