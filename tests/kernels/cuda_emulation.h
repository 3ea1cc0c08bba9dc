// Generated CUDA text on the host: one fibre a thread, barriers and shuffles as switches between fibres, shared memory
// as storage of the block that runs (blocks run one after the other). Included ahead of the text with
// CXXI_HOST_EMULATION.
//
// Not for speed, and without what the header does not name: tensor cores, asynchronous copies, clusters, blocks that
// wait for one another.
#pragma once

#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#define CXXI_FN inline
#define __global__
#define __shared__ static
#define __launch_bounds__(threads)

struct uint2 {
  unsigned int x, y;
};
struct alignas(16) uint4 {
  unsigned int x, y, z, w;
};
struct cxxi_dim {
  unsigned int x = 0, y = 0, z = 0;
};
static cxxi_dim threadIdx, blockIdx, blockDim, gridDim;

namespace cxxi_emulation {

// Threads that wait for one another. A thread that has returned counts as arrived.
struct Barrier {
  unsigned int members = 0, arrived = 0, generation = 0;
  bool complete() {
    if (members == 0 || arrived < members) return false;
    arrived = 0;
    ++generation;
    return true;
  }
};

class Block {
 public:
  explicit Block(unsigned int threads) : fibres_(threads), warps_((threads + 31) / 32), values_(threads) {
    stacks_ = std::make_unique<char[]>(size_t{threads} * kStackBytes);
  }

  // False: a barrier that not all threads reach.
  template <class Body>
  bool run(const Body& body) {
    body_ = [](const void* b) { (*static_cast<const Body*>(b))(); };
    body_data_ = &body;
    all_ = {};
    for (Barrier& warp : warps_) warp = {};
    for (unsigned int t = 0; t < fibres_.size(); ++t) {
      Fibre& fibre = fibres_[t];
      fibre.done = false;
      getcontext(&fibre.context);
      fibre.context.uc_stack.ss_sp = stacks_.get() + size_t{t} * kStackBytes;
      fibre.context.uc_stack.ss_size = kStackBytes;
      fibre.context.uc_link = &scheduler_;
      makecontext(&fibre.context, &Block::enter, 0);
      ++all_.members;
      ++warps_[t / 32].members;
    }
    current() = this;
    while (all_.members > 0) {
      progress_ = false;
      for (unsigned int t = 0; t < fibres_.size(); ++t) {
        if (fibres_[t].done) continue;
        running_ = t;
        threadIdx.x = t;
        swapcontext(&scheduler_, &fibres_[t].context);
        if (fibres_[t].done) leave(t);
      }
      if (!progress_) return false;
    }
    return true;
  }

  void wait(Barrier& barrier) {
    const unsigned int generation = barrier.generation;
    ++barrier.arrived;
    if (barrier.complete()) progress_ = true;
    while (barrier.generation == generation) swapcontext(&fibres_[running_].context, &scheduler_);
    progress_ = true;
  }
  void wait_all() { wait(all_); }
  uint64_t exchange(uint64_t value, int mask) {
    const unsigned int me = running_;
    values_[me] = value;
    wait(warps_[me / 32]);
    const uint64_t other = values_[(me ^ static_cast<unsigned int>(mask)) % values_.size()];
    wait(warps_[me / 32]);
    return other;
  }
  static Block*& current() {
    static Block* block = nullptr;
    return block;
  }

 private:
  static constexpr size_t kStackBytes = 64 * 1024;
  struct Fibre {
    ucontext_t context;
    bool done = false;
  };

  static void enter() {
    Block* block = current();
    block->body_(block->body_data_);
    block->fibres_[block->running_].done = true;
  }
  void leave(unsigned int t) {
    progress_ = true;
    for (Barrier* barrier : {&all_, &warps_[t / 32]}) {
      --barrier->members;
      barrier->complete();
    }
  }

  std::vector<Fibre> fibres_;
  std::vector<Barrier> warps_;
  Barrier all_;
  std::vector<uint64_t> values_;
  std::unique_ptr<char[]> stacks_;
  ucontext_t scheduler_;
  unsigned int running_ = 0;
  bool progress_ = false;
  void (*body_)(const void*) = nullptr;
  const void* body_data_ = nullptr;
};

template <class... Args, size_t... I>
bool launch(void (*kernel)(Args...), void* const* args, unsigned int threads, int64_t blocks,
            std::index_sequence<I...>) {
  Block block(threads);
  blockDim.x = threads;
  gridDim.x = static_cast<unsigned int>(blocks);
  for (int64_t b = 0; b < blocks; ++b) {
    blockIdx.x = static_cast<unsigned int>(b);
    if (!block.run([&] { kernel(*static_cast<Args*>(args[I])...); })) return false;
  }
  return true;
}
// args: addresses of the arguments, as cuLaunchKernel takes them.
template <class... Args>
bool launch(void (*kernel)(Args...), void* const* args, unsigned int threads, int64_t blocks) {
  return launch(kernel, args, threads, blocks, std::index_sequence_for<Args...>());
}

}  // namespace cxxi_emulation

inline void __syncthreads() { cxxi_emulation::Block::current()->wait_all(); }
template <class T>
T __shfl_xor_sync(unsigned int, T value, int mask) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = cxxi_emulation::Block::current()->exchange(bits, mask);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
T atomicCAS(T* address, T compare, T value) {
  T old;
  std::memcpy(&old, address, sizeof old);
  if (old == compare) std::memcpy(address, &value, sizeof value);
  return old;
}
inline void __threadfence_system() {}

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float rsqrtf(float a) { return 1.0f / std::sqrt(a); }
inline double rsqrt(double a) { return 1.0 / std::sqrt(a); }

// ---- Twins of the prelude's inline PTX
// -------------------------------------------------------------------------------
struct cxxi_bf16;
struct cxxi_f16;
inline float cxxi_bits_float(unsigned int bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline unsigned int cxxi_float_bits(float value) {
  unsigned int bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float cxxi_to_float(cxxi_f16 v);
inline cxxi_f16 cxxi_to_f16(float f);
inline cxxi_bf16 cxxi_to_bf16(float f);
// Defined after the text, where the storage types are complete.
#define CXXI_EMULATION_TWINS                                                       \
  inline float cxxi_to_float(cxxi_f16 v) {                                         \
    const unsigned int sign = (unsigned int)(v.bits & 0x8000u) << 16;              \
    const unsigned int exponent = (v.bits >> 10) & 31u, mantissa = v.bits & 1023u; \
    if (exponent == 0) {                                                           \
      const float value = std::ldexp(float(mantissa), -24);                        \
      return sign ? -value : value;                                                \
    }                                                                              \
    const unsigned int scaled = exponent == 31 ? 255u : exponent + 112u;           \
    return cxxi_bits_float(sign | (scaled << 23) | (mantissa << 13));              \
  }                                                                                \
  inline cxxi_f16 cxxi_to_f16(float f) {                                           \
    const unsigned int sign = (cxxi_float_bits(f) >> 16) & 0x8000u;                \
    const float a = std::fabs(f);                                                  \
    if (f != f) return {0x7fff};                                                   \
    unsigned int code = 0x7c00u;                                                   \
    if (a < 65520.0f) {                                                            \
      int exponent;                                                                \
      std::frexp(a, &exponent);                                                    \
      if (exponent < -13) exponent = -13;                                          \
      code = (unsigned int)(std::nearbyint(std::ldexp(double(a), 11 - exponent))); \
      code += a == 0.0f ? 0u : (unsigned int)(exponent + 13) << 10;                \
    }                                                                              \
    return {(unsigned short)(sign | code)};                                        \
  }                                                                                \
  inline cxxi_bf16 cxxi_to_bf16(float f) {                                         \
    if (f != f) return {0x7fff};                                                   \
    const unsigned int bits = cxxi_float_bits(f);                                  \
    return {(unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};       \
  }
