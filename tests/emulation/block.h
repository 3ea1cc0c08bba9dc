// The threads of a block, one fibre each, and what they wait for: barriers of the block and of warps, exchange between lanes, asynchronous work.
// A seed says who runs next and when asynchronous work is done. Errors are texts: the first one of a launch counts.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "async_work.h"
#include "races.h"
#include "random.h"

struct cxxi_dim {
  unsigned int x = 0, y = 0, z = 0;
};
static cxxi_dim threadIdx, blockIdx, blockDim, gridDim;

namespace cxxi_emulation {

class Block {
 public:
  Block(unsigned int threads, uint64_t seed)
      : random_(seed), order_(Order(random_.below(3))), timing_(Timing(random_.below(3))), fibres_(threads), warps_((threads + 31) / 32) {
    stacks_ = std::make_unique<char[]>(size_t{threads} * kStackBytes);
  }

  template <class Body>
  void run(const Body& body) {
    body_ = [](const void* b) { (*static_cast<const Body*>(b))(); };
    body_data_ = &body;
    Races::poison();
    begin_block();
    Block* const outer = current();
    current() = this;
    if (const unsigned int first = take_ready(); first != kNone) resume(first, &scheduler_);
    current() = outer;
    if (left_ < fibres_.size()) fail("a barrier that not all threads reach");
    if (!races_.first().empty()) fail(races_.first());
  }
  const std::string& error() const { return error_; }
  void fail(const std::string& error) {
    if (error_.empty()) error_ = "block " + std::to_string(blockIdx.x) + ": " + error;
  }

  // ---- What intrinsics are made of. `call`: their name; all lanes have to be at the same one.
  void wait_block() { wait(all_); }
  void wait_warp(const char* call, bool exchanges = false) {
    Warp& warp = warps_[running_ / 32];
    if (warp.barrier.arrived == 0) {
      warp.call = call;
      warp.exchanges = exchanges;
    }
    if (std::strcmp(warp.call, call) != 0) fail(std::string("lanes of a warp are at ") + warp.call + " and at " + call);
    wait(warp.barrier);
  }
  // Eight words of each lane of the warp, by lane. Two exchanges in a row use different slots, so that one wait is enough.
  using Words = std::array<uint64_t, 8>;
  const std::array<Words, 32>& exchange(const char* call, const Words& mine) {
    Warp& warp = warps_[running_ / 32];
    if (warp.barrier.members < warp.lanes) fail(std::string(call) + ": lanes of the warp have returned");
    auto& words = warp.words[warp.barrier.generation % 2];
    words[running_ % 32] = mine;
    wait_warp(call, true);
    return words;
  }
  AsyncWork& copies() { return fibres_[running_].copies; }
  AsyncWork& products() { return fibres_[running_].products; }
  template <class Work>
  void start(AsyncWork& queue, Work work) {
    queue.start(timing_, random_, std::move(work));
  }
  // Where another thread may come first, though nothing is waited for.
  void may_switch() {
    if (random_.below(4) != 0) return;
    ready_.push_back(running_);
    switch_away();
  }
  void note_store(const void* address, size_t bytes) {
    if (is_shared(reinterpret_cast<uintptr_t>(address))) races_.store(reinterpret_cast<uintptr_t>(address), bytes, now());
  }
  void note_load(const void* address, size_t bytes) {
    if (is_shared(reinterpret_cast<uintptr_t>(address))) races_.load(reinterpret_cast<uintptr_t>(address), bytes, now());
  }
  static Block*& current() {
    static Block* block = nullptr;
    return block;
  }

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
      makecontext(&fibre.context, &Block::enter, 0);
      warps_[t / 32].barrier.members = ++warps_[t / 32].lanes;
      ready_.push_back(t);
      std::swap(ready_.back(), ready_[random_.below(t + 1)]);
    }
  }
  static void enter() {
    Block* const block = current();
    block->body_(block->body_data_);
    block->leave();
  }
  void leave() {
    ++left_;
    copies().clear();
    products().clear();
    Warp& warp = warps_[running_ / 32];
    if (warp.exchanges && warp.barrier.arrived > 0) fail(std::string(warp.call) + ": lanes of the warp have returned");
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
    running_ = threadIdx.x = next;
    swapcontext(from, &fibres_[next].context);
  }
  Access now() const { return {running_, all_.generation, warps_[running_ / 32].barrier.generation}; }

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
  void (*body_)(const void*) = nullptr;
  const void* body_data_ = nullptr;
};

}  // namespace cxxi_emulation
