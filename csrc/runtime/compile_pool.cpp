#include "runtime/compile_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <numeric>
#include <set>
#include <system_error>
#include <thread>

namespace cxxinductor::runtime {
namespace {

// How long a waiting caller goes without asking whether it shall go on.
constexpr std::chrono::milliseconds kPollInterval{20};

void run_task(CompileTask& task, const InterruptCheck& interrupted, std::exception_ptr& error) {
  try {
    task.work(interrupted);
  } catch (...) {
    error = std::current_exception();
  }
  task.work = nullptr;  // what the task holds is released before its caller goes on
}

std::atomic<AroundWait> around_wait{[](const std::function<void()>& wait) { wait(); }};

}  // namespace

void set_around_wait(AroundWait around) { around_wait = around; }

// The tasks of one run_all.
struct CompilePool::Batch {
  explicit Batch(std::vector<CompileTask> given) : tasks(std::move(given)), errors(tasks.size()), unfinished(tasks.size()) {}
  // All of them on the calling thread.
  void run_here(const InterruptCheck& interrupted) {
    std::vector<size_t> order(tasks.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return tasks[a].cost > tasks[b].cost; });
    // A check that has said yes is not asked again: it may say so once only.
    bool stop = false;
    const InterruptCheck check = [&] { return stop = stop || (interrupted && interrupted()); };
    for (size_t i : order) {
      stop_if(check);
      run_task(tasks[i], check, errors[i]);
    }
    stop_if(check);
  }
  std::vector<CompileFailure> failures() const {
    std::vector<CompileFailure> all;
    for (size_t i = 0; i < tasks.size(); ++i)
      if (errors[i]) all.push_back({tasks[i].name, errors[i]});
    return all;
  }

  std::vector<CompileTask> tasks;
  std::vector<std::exception_ptr> errors;
  size_t unfinished;  // guarded by the pool's mutex
  std::atomic<bool> stopped = false;
};

struct CompilePool::State {
  struct Entry {
    double cost;
    uint64_t order;  // earlier submissions first among equal costs
    std::shared_ptr<Batch> batch;
    size_t index;
    bool operator<(const Entry& other) const { return cost != other.cost ? cost > other.cost : order < other.order; }
  };
  struct Later {
    const void* owner;
    CompileTask task;
  };
  struct Running {  // a task of run_in_background that has begun
    const void* owner;
    std::atomic<bool> stopped = false;
  };

  explicit State(int wanted) : concurrent(static_cast<size_t>(wanted)) {}

  // All with the mutex held.
  bool may_take_entry() const { return !queue.empty() && working < concurrent; }
  bool may_take_later() const { return queue.empty() && !later.empty() && running.size() < std::max<size_t>(concurrent - 1, 1); }
  void start_threads();
  void work_loop();
  void run_entry(std::unique_lock<std::mutex>& lock);
  void run_next_later(std::unique_lock<std::mutex>& lock);
  size_t drop_entries(const std::shared_ptr<Batch>& batch);
  // Both take it.
  void cancel(const void* owner);
  void finish();

  const size_t concurrent;
  std::mutex mutex;
  std::condition_variable wake;     // there is work, or the end
  std::condition_variable changed;  // a task has ended or was dropped
  std::set<Entry> queue;
  std::deque<Later> later;
  std::vector<std::shared_ptr<Running>> running;
  size_t working = 0;  // entries of the queue that run
  uint64_t given = 0, done = 0;
  std::atomic<bool> stopping = false;
  std::vector<std::thread> threads;
};

// As many as there is work for, one more than work for run_all where a background task holds one; what the system refuses is
// asked for again with the next task.
void CompilePool::State::start_threads() {
  if (stopping) return;
  const size_t needed = std::min(working + queue.size(), concurrent) + running.size() + later.size();
  const size_t wanted = std::min(needed, std::max<size_t>(concurrent, 2));
  try {
    while (threads.size() < wanted) threads.emplace_back([this] { work_loop(); });
  } catch (const std::system_error&) {
    // Those that there are do the work.
  }
}

void CompilePool::State::work_loop() {
  std::unique_lock lock(mutex);
  while (true) {
    wake.wait(lock, [this] { return stopping || may_take_entry() || may_take_later(); });
    if (may_take_entry()) {
      run_entry(lock);
    } else if (may_take_later()) {
      run_next_later(lock);
    } else if (stopping) {
      return;
    }
  }
}

void CompilePool::State::run_entry(std::unique_lock<std::mutex>& lock) {
  const Entry entry = *queue.begin();
  queue.erase(queue.begin());
  ++working;
  lock.unlock();
  Batch& batch = *entry.batch;
  run_task(
      batch.tasks[entry.index], [this, &batch] { return batch.stopped || stopping; }, batch.errors[entry.index]);
  lock.lock();
  --working;
  ++done;
  --batch.unfinished;
  changed.notify_all();
  wake.notify_one();
}

void CompilePool::State::run_next_later(std::unique_lock<std::mutex>& lock) {
  Later next = std::move(later.front());
  later.pop_front();
  const auto entry = std::make_shared<Running>();
  entry->owner = next.owner;
  running.push_back(entry);
  lock.unlock();
  std::exception_ptr ignored;
  run_task(
      next.task, [this, &entry] { return entry->stopped || stopping; }, ignored);
  lock.lock();
  running.erase(std::find(running.begin(), running.end(), entry));
  ++done;
  changed.notify_all();
  wake.notify_one();
}

// Those of the batch that have not begun.
size_t CompilePool::State::drop_entries(const std::shared_ptr<Batch>& batch) {
  return std::erase_if(queue, [&](const Entry& entry) { return entry.batch == batch; });
}

CompilePool::CompilePool(int threads)
    : threads_(threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))),
      state_(std::make_unique<State>(threads_)),
      in_child_([this] {
        // The parent's threads are not here and its condition variables count them as waiting, so the old state cannot be
        // destroyed; what its tasks hold belongs to callers that are not here either.
        const uint64_t given = state_->given;
        static_cast<void>(state_.release());
        state_ = std::make_unique<State>(threads_);
        state_->given = state_->done = given;
      }) {}

CompilePool::~CompilePool() { stop(); }

CompilePool::Progress CompilePool::progress() const {
  const std::lock_guard lock(state_->mutex);
  return {state_->given, state_->done};
}

void CompilePool::run_in_background(const void* owner, CompileTask task) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (state.stopping) return;
  state.later.push_back({owner, std::move(task)});
  ++state.given;
  state.start_threads();
  state.wake.notify_one();
}

void CompilePool::cancel(const void* owner) {
  around_wait.load()([this, owner] { state_->cancel(owner); });
}

void CompilePool::State::cancel(const void* owner) {
  std::unique_lock lock(mutex);
  done += std::erase_if(later, [owner](const Later& task) { return task.owner == owner; });
  changed.notify_all();
  const auto is_owners = [owner](const std::shared_ptr<Running>& entry) { return entry->owner == owner; };
  for (const auto& entry : running)
    if (is_owners(entry)) entry->stopped = true;
  changed.wait(lock, [&] { return std::none_of(running.begin(), running.end(), is_owners); });
}

void CompilePool::finish() {
  around_wait.load()([this] { state_->finish(); });
}

void CompilePool::State::finish() {
  std::unique_lock lock(mutex);
  start_threads();
  while (threads.empty() && !later.empty()) run_next_later(lock);
  changed.wait(lock, [this] { return later.empty() && running.empty(); });
}

void CompilePool::stop() {
  State& state = *state_;
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(state.mutex);
    state.stopping = true;
    state.done += state.later.size();
    state.later.clear();
    threads.swap(state.threads);
  }
  state.wake.notify_all();
  state.changed.notify_all();
  for (std::thread& thread : threads) thread.join();
}

std::vector<CompileFailure> CompilePool::run_all(std::vector<CompileTask> tasks, const InterruptCheck& interrupted) {
  State& state = *state_;
  const auto batch = std::make_shared<Batch>(std::move(tasks));
  std::unique_lock lock(state.mutex);
  const uint64_t first = state.given;
  state.given += batch->tasks.size();
  for (size_t i = 0; i < batch->tasks.size(); ++i) state.queue.insert({batch->tasks[i].cost, first + i, batch, i});
  state.start_threads();
  if (state.threads.empty()) {
    state.drop_entries(batch);
    lock.unlock();
    batch->run_here(interrupted);
    lock.lock();
    state.done += batch->tasks.size();
    return batch->failures();
  }
  state.wake.notify_all();
  const auto finished = [&] { return batch->unfinished == 0; };
  while (!state.changed.wait_for(lock, kPollInterval, finished)) {
    if (!interrupted || batch->stopped) continue;
    lock.unlock();
    const bool stop = interrupted();
    if (&state != state_.get()) throw Interrupted();  // the check forked, and this is the child
    lock.lock();
    if (!stop) continue;
    batch->stopped = true;
    const size_t dropped = state.drop_entries(batch);
    batch->unfinished -= dropped;
    state.done += dropped;
  }
  if (batch->stopped) throw Interrupted();
  return batch->failures();
}

}  // namespace cxxinductor::runtime
