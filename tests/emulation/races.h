// Finds accesses of shared memory that no barrier orders. The compiler calls a function per access (-fsanitize=kernel-address, whose functions
// emulation.h defines instead of those of a sanitizer); each byte remembers who touched it last.
//
// Two accesses of different threads, at least one of them a store, race if no barrier of the block lies between them, nor, within a warp, a call
// at which its lanes wait for each other. Atomics (intrinsics/cuda/atomics.cuh) are not accesses. Accesses at a
// constant index of an array are not seen: the compiler makes no call for them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

namespace cxxi_emulation {

// When an access was made: `block` and `warp` count the waits of the thread's block and of its warp.
struct Access {
  unsigned int thread = 0, block = 0, warp = 0;
};

class Races {
 public:
  // Of shared memory that begins at `begin`.
  Races(const char* begin, size_t bytes)
      : begin_(reinterpret_cast<uintptr_t>(begin)), bytes_(bytes), touched_(static_cast<Byte*>(std::calloc(bytes + 1, sizeof(Byte)))) {}

  void store(const void* address, size_t bytes, const Access& now) {
    const size_t first = reinterpret_cast<uintptr_t>(address) - begin_;  // wraps around for what lies before
    for (size_t at = first, end = first + bytes; at < end && at < bytes_; ++at) {
      Byte& byte = touched_.get()[at];
      report(at, byte.stored, now, "stores");
      report(at, byte.loaded, now, "loads");
      report(at, byte.loaded_before, now, "loads");
      byte.stored = now;
    }
  }
  void load(const void* address, size_t bytes, const Access& now) {
    const size_t first = reinterpret_cast<uintptr_t>(address) - begin_;
    for (size_t at = first, end = first + bytes; at < end && at < bytes_; ++at) {
      Byte& byte = touched_.get()[at];
      report(at, byte.stored, now, "stores");
      if (byte.loaded.thread / 32 != now.thread / 32) byte.loaded_before = byte.loaded;
      byte.loaded = now;
    }
  }
  const std::string& first() const { return first_; }

 private:
  // loaded_before: by a thread of another warp than `loaded`.
  struct Byte {
    Access stored, loaded, loaded_before;
  };
  struct Free {
    void operator()(Byte* bytes) const { std::free(bytes); }
  };
  void report(size_t at, const Access& before, const Access& now, const char* what) {
    if (before.block != now.block || before.thread == now.thread || !first_.empty()) return;
    if (before.thread / 32 == now.thread / 32 && before.warp != now.warp) return;
    first_ = "thread " + std::to_string(now.thread) + " touches byte " + std::to_string(at) + " of shared memory, which thread " +
             std::to_string(before.thread) + " " + what + ", without a barrier between them";
  }
  uintptr_t begin_;
  size_t bytes_;
  std::unique_ptr<Byte, Free> touched_;  // zeros, of which the system makes pages as they are touched
  std::string first_;
};

}  // namespace cxxi_emulation
