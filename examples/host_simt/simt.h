// The words of CUDA itself, for kernels that run on the host. The library puts it ahead of each kernel's text.
//
// A thread of the host runs one block at a time. The block's threads are fibers with stacks of their own, which take turns: each runs until it
// waits for others. Shared memory is memory of the thread of the host.

// Ubuntu's GCC asks the C library to stop jumps to another stack, which is what changes fibers.
#undef _FORTIFY_SOURCE
#include <ucontext.h>

#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __shared__ static thread_local
#define __grid_constant__
#define __launch_bounds__(...)

struct uint2 {
  unsigned int x, y;
};
struct alignas(16) uint4 {
  unsigned int x, y, z, w;
};
struct host_simt_index {
  unsigned int x = 0, y = 0, z = 0;
};
static thread_local host_simt_index threadIdx, blockIdx, blockDim, gridDim;

namespace host_simt {

// Members that wait for one another. One that has ended is none any more.
struct Meeting {
  unsigned int members = 0, waiting = 0, number = 0;
  bool over() {
    if (waiting < members) return false;
    waiting = 0;
    ++number;
    return true;
  }
};

class Block;
static thread_local Block* block = nullptr;

class Block {
 public:
  Block(unsigned int threads, int64_t shared_bytes)
      : fibers_(threads), warps_((threads + 31) / 32), words_(threads), stacks_(threads * stack_bytes), shared_(size_t(shared_bytes) + alignment) {}

  // Runs body() once as each thread. False: some wait for others that never come.
  template <class Body>
  bool run(Body& body) {
    body_ = [](void* of) { (*static_cast<Body*>(of))(); };
    of_ = &body;
    all_ = {};
    for (Meeting& warp : warps_) warp = {};
    for (unsigned int t = 0; t < fibers_.size(); ++t) {
      fibers_[t].state = Fiber::New;
      ++all_.members;
      ++warps_[t / 32].members;
    }
    block = this;
    while (all_.members > 0) {
      moved_ = false;
      for (turn_ = 0; turn_ < fibers_.size(); ++turn_)
        if (fibers_[turn_].state != Fiber::Ended) give_turn();
      if (!moved_) return false;
    }
    return true;
  }

  void wait_for_block() { wait(all_); }
  void wait_for_warp() { wait(warps_[turn_ / 32]); }
  // The value that the lane of this warp has, all of whose threads are here.
  uint64_t take(uint64_t value, unsigned int lane) {
    words_[turn_] = value;
    wait_for_warp();
    const uint64_t taken = words_[(turn_ / 32 * 32 + lane) % words_.size()];
    wait_for_warp();
    return taken;
  }
  unsigned int lane() const { return turn_ % 32; }
  unsigned char* shared() { return shared_.data() + (alignment - reinterpret_cast<uintptr_t>(shared_.data()) % alignment) % alignment; }

 private:
  static constexpr size_t stack_bytes = 64 * 1024, alignment = 1024;
  struct Fiber {
    enum State { New, Started, Ended } state = Ended;
    jmp_buf place;
  };

  // The first turn of a fiber changes the stack, the others jump.
  void give_turn() {
    threadIdx.x = turn_ % blockDim.x;
    threadIdx.y = turn_ / blockDim.x;
    if (_setjmp(scheduler_) != 0) return;
    Fiber& fiber = fibers_[turn_];
    if (fiber.state == Fiber::Started) _longjmp(fiber.place, 1);
    fiber.state = Fiber::Started;
    moved_ = true;
    getcontext(&start_);
    start_.uc_stack.ss_sp = stacks_.data() + turn_ * stack_bytes;
    start_.uc_stack.ss_size = stack_bytes;
    start_.uc_link = nullptr;
    makecontext(&start_, &Block::enter, 0);
    setcontext(&start_);
  }
  static void enter() {
    Block& here = *block;
    here.body_(here.of_);
    here.fibers_[here.turn_].state = Fiber::Ended;
    here.moved_ = true;
    for (Meeting* meeting : {&here.all_, &here.warps_[here.turn_ / 32]}) {
      --meeting->members;
      meeting->over();
    }
    _longjmp(here.scheduler_, 1);
  }
  void wait(Meeting& meeting) {
    const unsigned int number = meeting.number;
    ++meeting.waiting;
    if (meeting.over()) moved_ = true;
    while (meeting.number == number)
      if (_setjmp(fibers_[turn_].place) == 0) _longjmp(scheduler_, 1);
    moved_ = true;
  }

  std::vector<Fiber> fibers_;
  std::vector<Meeting> warps_;
  Meeting all_;
  std::vector<uint64_t> words_;
  std::vector<unsigned char> stacks_, shared_;
  jmp_buf scheduler_;
  ucontext_t start_;
  unsigned int turn_ = 0;
  bool moved_ = false;
  void (*body_)(void*) = nullptr;
  void* of_ = nullptr;
};

// Blocks first to last of a launch, but for the last.
template <class... Arguments, size_t... I>
bool run(void (*kernel)(Arguments...), void* const* arguments, const uint32_t* grid, const uint32_t* threads, int64_t shared_bytes, uint64_t first,
         uint64_t last, std::index_sequence<I...>) {
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {threads[0], threads[1], threads[2]};
  Block here(threads[0] * threads[1] * threads[2], shared_bytes);
  auto body = [&] { kernel(*static_cast<Arguments*>(arguments[I])...); };
  for (uint64_t b = first; b < last; ++b) {
    blockIdx = {unsigned(b % grid[0]), unsigned(b / grid[0] % grid[1]), unsigned(b / grid[0] / grid[1])};
    if (!here.run(body)) return false;
  }
  return true;
}
template <class... Arguments, class... Rest>
bool run(void (*kernel)(Arguments...), Rest... rest) {
  return run(kernel, rest..., std::index_sequence_for<Arguments...>());
}

template <class T>
T shuffle(T value, unsigned int lane) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  word = block->take(word, lane);
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace host_simt

// The rest of what kernels need are the intrinsics.
inline void __syncthreads() { host_simt::block->wait_for_block(); }
