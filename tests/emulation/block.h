// What the kernels of an emulated unit see of the block that runs them: barriers of the block and of warps, exchange between lanes, asynchronous
// work. scheduler.cpp has the block itself, which is compiled once and not with each unit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

struct cxxi_dim {
  unsigned int x = 0, y = 0, z = 0;
};

namespace cxxi_emulation {

// Asynchronous work of a thread: copies to shared memory, products of warp groups. Each queue has groups of its own.
enum class Queue { Copies, Products };

// All are called by the thread that runs. `call`: the name of the intrinsic; all lanes of a warp have to be at the same one.
class Block {
 public:
  // The first error of a launch is its result.
  virtual void fail(const char* call, const char* what) = 0;
  virtual void wait_block() = 0;
  virtual void wait_warp(const char* call) = 0;
  // Eight words of each lane of the warp, by lane. Valid until the warp's next exchange but one.
  using Words = std::array<uint64_t, 8>;
  virtual const std::array<Words, 32>& exchange(const char* call, const Words& mine) = 0;
  // Where another thread may come first, though nothing is waited for.
  virtual void may_switch() = 0;
  virtual void start(Queue queue, std::function<void()> work) = 0;
  virtual void commit(Queue queue) = 0;
  // Until at most `pending` committed groups are under way.
  virtual void wait(Queue queue, size_t pending) = 0;
  // Accesses of shared memory; of any other nothing is noted.
  virtual void note_store(const void* address, size_t bytes) = 0;
  virtual void note_load(const void* address, size_t bytes) = 0;

 protected:
  ~Block() = default;
};

// A launch as the unit hands it over: addresses of the unit's own variables, and its shared memory.
struct Launch {
  void (*kernel)(const void* arguments);
  const void* arguments;
  cxxi_dim *thread_index, *block_index, *block_size, *blocks;
  Block** block;
  char *shared_begin, *shared_end;
};

class Launcher {
 public:
  virtual void run(const Launch& launch) = 0;

 protected:
  ~Launcher() = default;
};

}  // namespace cxxi_emulation
