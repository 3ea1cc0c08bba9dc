#include "emulation/scheduler.h"

#include <ucontext.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "emulation/async_work.h"
#include "emulation/races.h"
#include "emulation/random.h"

namespace cxxi_emulation {
namespace {

class FibreBlock final : public Block {
 public:
  FibreBlock(const Launch& launch, unsigned int threads, uint64_t seed)
      : launch_(launch),
        random_(seed),
        order_(Order(random_.below(3))),
        timing_(Timing(random_.below(3))),
        fibres_(threads),
        warps_((threads + 31) / 32),
        stacks_(std::make_unique_for_overwrite<char[]>(size_t{threads} * kStackBytes)),
        races_(launch.shared_begin, shared_bytes()) {}

  void run() {
    std::memset(launch_.shared_begin, 0xff, shared_bytes());  // what no kernel may rely on
    begin_block();
    running_block = this;
    if (const unsigned int first = take_ready(); first != kNone) resume(first, &scheduler_);
    if (left_ < fibres_.size()) fail("a barrier that not all threads reach");
    if (!races_.first().empty()) fail(races_.first());
  }
  const std::string& error() const { return error_; }

  void fail(const char* call, const char* what) override { fail(std::string(call) + ": " + what); }
  void wait_block() override { wait(all_); }
  void wait_warp(const char* call) override { wait_warp(call, false); }
  // Two exchanges in a row use different slots, so that one wait is enough.
  const std::array<Words, 32>& exchange(const char* call, const Words& mine) override {
    Warp& warp = warps_[running_ / 32];
    if (warp.barrier.members < warp.lanes) fail(call, "lanes of the warp have returned");
    auto& words = warp.words[warp.barrier.generation % 2];
    words[running_ % 32] = mine;
    wait_warp(call, true);
    return words;
  }
  void may_switch() override {
    if (random_.below(4) != 0) return;
    ready_.push_back(running_);
    switch_away();
  }
  void start(Queue queue, std::function<void()> work) override { work_of(queue).start(timing_, random_, std::move(work)); }
  void commit(Queue queue) override { work_of(queue).commit(); }
  void wait(Queue queue, size_t pending) override { work_of(queue).wait(pending); }
  void note_store(const void* address, size_t bytes) override { races_.store(address, bytes, now()); }
  void note_load(const void* address, size_t bytes) override { races_.load(address, bytes, now()); }

 private:
  static constexpr size_t kStackBytes = 64 * 1024;
  static constexpr unsigned int kNone = ~0u;
  // Which of the threads that can run does: any, the one that could first, the one that can since last (a warp runs ahead of the others).
  enum class Order { Any, First, Last };
  // A thread that has returned counts as arrived.
  struct Barrier {
    unsigned int members = 0, arrived = 0, generation = 0;
    std::vector<unsigned int> waiting;
  };
  struct Warp {
    Barrier barrier;
    unsigned int lanes = 0;
    const char* call = "";
    bool exchanges = false;  // what its lanes wait for now
    std::array<std::array<Words, 32>, 2> words;
  };
  struct Fibre {
    ucontext_t context;
    AsyncWork copies, products;
  };

  size_t shared_bytes() const { return size_t(launch_.shared_end - launch_.shared_begin); }
  void fail(const std::string& error) {
    if (error_.empty()) error_ = "block " + std::to_string(launch_.block_index->x) + ": " + error;
  }
  AsyncWork& work_of(Queue queue) { return queue == Queue::Copies ? fibres_[running_].copies : fibres_[running_].products; }
  void wait_warp(const char* call, bool exchanges) {
    Warp& warp = warps_[running_ / 32];
    if (warp.barrier.arrived == 0) {
      warp.call = call;
      warp.exchanges = exchanges;
    }
    if (std::strcmp(warp.call, call) != 0) fail(std::string("lanes of a warp are at ") + warp.call + " and at " + call);
    wait(warp.barrier);
  }
  void begin_block() {
    const unsigned int passed = all_.generation + 1;  // what was touched by earlier blocks is behind a barrier
    all_ = {static_cast<unsigned int>(fibres_.size()), 0, passed, {}};
    left_ = 0;
    ready_.clear();
    for (Warp& warp : warps_) warp = {};
    for (unsigned int t = 0; t < fibres_.size(); ++t) {
      Fibre& fibre = fibres_[t];
      fibre.copies.clear();
      fibre.products.clear();
      getcontext(&fibre.context);
      fibre.context.uc_stack.ss_sp = stacks_.get() + size_t{t} * kStackBytes;
      fibre.context.uc_stack.ss_size = kStackBytes;
      fibre.context.uc_link = &scheduler_;
      makecontext(&fibre.context, &FibreBlock::enter, 0);
      warps_[t / 32].barrier.members = ++warps_[t / 32].lanes;
      ready_.push_back(t);
      std::swap(ready_.back(), ready_[random_.below(t + 1)]);
    }
  }
  static void enter() {
    FibreBlock* const block = running_block;
    block->launch_.kernel(block->launch_.arguments);
    block->leave();
  }
  void leave() {
    ++left_;
    fibres_[running_].copies.clear();
    fibres_[running_].products.clear();
    Warp& warp = warps_[running_ / 32];
    if (warp.exchanges && warp.barrier.arrived > 0) fail(warp.call, "lanes of the warp have returned");
    for (Barrier* barrier : {&all_, &warp.barrier}) {
      --barrier->members;
      complete(*barrier);
    }
    switch_away();  // and never comes back
  }
  void wait(Barrier& barrier) {
    ++barrier.arrived;
    barrier.waiting.push_back(running_);
    complete(barrier);
    switch_away();
  }
  void complete(Barrier& barrier) {
    if (barrier.members == 0 || barrier.arrived < barrier.members) return;
    barrier.arrived = 0;
    ++barrier.generation;
    ready_.insert(ready_.end(), barrier.waiting.begin(), barrier.waiting.end());
    barrier.waiting.clear();
  }
  unsigned int take_ready() {
    if (ready_.empty()) return kNone;
    if (order_ == Order::First) {
      const unsigned int first = ready_.front();
      ready_.pop_front();
      return first;
    }
    if (order_ == Order::Any) std::swap(ready_.back(), ready_[random_.below(static_cast<unsigned int>(ready_.size()))]);
    const unsigned int last = ready_.back();
    ready_.pop_back();
    return last;
  }
  void switch_away() {
    Fibre& fibre = fibres_[running_];
    fibre.copies.progress(timing_, random_);
    fibre.products.progress(timing_, random_);
    const unsigned int next = take_ready();
    if (next == running_) return;
    if (next != kNone)
      resume(next, &fibre.context);
    else
      swapcontext(&fibre.context, &scheduler_);  // all have returned, or none can run
  }
  void resume(unsigned int next, ucontext_t* from) {
    running_ = launch_.thread_index->x = next;
    swapcontext(from, &fibres_[next].context);
  }
  Access now() const { return {running_, all_.generation, warps_[running_ / 32].barrier.generation}; }

  static inline thread_local FibreBlock* running_block = nullptr;  // a fibre begins without arguments

  const Launch& launch_;
  Random random_;
  Order order_;
  Timing timing_;
  std::vector<Fibre> fibres_;
  std::vector<Warp> warps_;
  Barrier all_;
  std::deque<unsigned int> ready_;
  std::unique_ptr<char[]> stacks_;
  ucontext_t scheduler_;
  Races races_;
  std::string error_;
  unsigned int running_ = 0;
  size_t left_ = 0;
};

}  // namespace

void Scheduler::run(const Launch& launch) {
  FibreBlock block(launch, threads_, seed_);
  launch.block_size->x = threads_;
  launch.blocks->x = static_cast<unsigned int>(blocks_);
  *launch.block = &block;
  for (int64_t b = 0; b < blocks_ && block.error().empty(); ++b) {
    launch.block_index->x = static_cast<unsigned int>(b);
    block.run();
  }
  *launch.block = nullptr;
  error_ = block.error();
}

}  // namespace cxxi_emulation
