// Finds accesses of shared memory that no barrier orders. The compiler calls a function per access (-fsanitize=kernel-address, whose functions
// are defined here instead of those of a sanitizer); each byte remembers who touched it last.
//
// Two accesses of different threads, at least one of them a store, race if no barrier of the block lies between them, nor, within a warp, a call
// at which its lanes wait for each other. Atomics (intrinsics/cuda/atomics.cuh) are not accesses. Accesses at a
// constant index of an array are not seen: the compiler makes no call for them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" {
extern char __start_cxxi_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_cxxi_shared[] __attribute__((weak, visibility("hidden")));
}

namespace cxxi_emulation {

// Without accesses of its own: it is called at each one.
__attribute__((no_sanitize("kernel-address"))) inline bool is_shared(uintptr_t address) {
  return address - reinterpret_cast<uintptr_t>(__start_cxxi_shared) <
         reinterpret_cast<uintptr_t>(__stop_cxxi_shared) - reinterpret_cast<uintptr_t>(__start_cxxi_shared);
}

// When an access was made: `block` and `warp` count the waits of the thread's block and of its warp.
struct Access {
  unsigned int thread = 0, block = 0, warp = 0;
};

class Races {
 public:
  Races()
      : begin_(reinterpret_cast<uintptr_t>(__start_cxxi_shared)),
        bytes_(size_t(__stop_cxxi_shared - __start_cxxi_shared)),
        touched_(static_cast<Byte*>(std::calloc(bytes_ + 1, sizeof(Byte)))) {}
  ~Races() { std::free(touched_); }
  Races(const Races&) = delete;

  void store(uintptr_t address, size_t bytes, const Access& now) {
    for (uintptr_t at = address - begin_, end = at + bytes; at < end && at < bytes_; ++at) {
      Byte& byte = touched_[at];
      report(at, byte.stored, now, "stores");
      report(at, byte.loaded, now, "loads");
      report(at, byte.loaded_before, now, "loads");
      byte.stored = now;
    }
  }
  void load(uintptr_t address, size_t bytes, const Access& now) {
    for (uintptr_t at = address - begin_, end = at + bytes; at < end && at < bytes_; ++at) {
      Byte& byte = touched_[at];
      report(at, byte.stored, now, "stores");
      if (byte.loaded.thread / 32 != now.thread / 32) byte.loaded_before = byte.loaded;
      byte.loaded = now;
    }
  }
  // A block begins with shared memory that holds what no kernel may rely on.
  __attribute__((no_sanitize("kernel-address"))) static void poison() {
    __builtin_memset(__start_cxxi_shared, 0xff, size_t(__stop_cxxi_shared - __start_cxxi_shared));
  }
  const std::string& first() const { return first_; }

 private:
  // loaded_before: by a thread of another warp than `loaded`.
  struct Byte {
    Access stored, loaded, loaded_before;
  };
  void report(size_t at, const Access& before, const Access& now, const char* what) {
    if (before.block != now.block || before.thread == now.thread || !first_.empty()) return;
    if (before.thread / 32 == now.thread / 32 && before.warp != now.warp) return;
    first_ = "thread " + std::to_string(now.thread) + " touches byte " + std::to_string(at) + " of shared memory, which thread " +
             std::to_string(before.thread) + " " + what + ", without a barrier between them";
  }
  uintptr_t begin_;
  size_t bytes_;
  Byte* const touched_;  // zeros, of which the system makes pages as they are touched
  std::string first_;
};

}  // namespace cxxi_emulation
