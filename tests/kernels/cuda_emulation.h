// Generated CUDA text on the host: one fibre a thread, barriers and shuffles as switches between fibres, shared memory
// as storage of the block that runs (blocks run one after the other). Included ahead of the text with
// CXXI_HOST_EMULATION.
//
// Asynchronous copies are made as late as the waits allow, so that a read too early finds what was there before; tensor
// cores exchange fragments through their warp, or through the warps of a group (wgmma). Not for speed, and without what the
// header does not name: bulk copies, clusters, blocks that wait for one another.
#pragma once

#include <ucontext.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#define CXXI_FN inline
#define __global__
#define __device__
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)

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
  explicit Block(unsigned int threads)
      : fibres_(threads), warps_((threads + 31) / 32), values_(threads), words_(threads) {
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
      fibre.copies.assign(1, {});
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
  void wait_warp() { wait(warps_[running_ / 32]); }
  uint64_t exchange(uint64_t value, int mask) {
    const unsigned int me = running_;
    values_[me] = value;
    wait(warps_[me / 32]);
    const uint64_t other = values_[(me ^ static_cast<unsigned int>(mask)) % values_.size()];
    wait(warps_[me / 32]);
    return other;
  }
  // Eight words of each lane of the warp, by lane.
  using Words = std::array<uint64_t, 8>;
  std::array<Words, 32> gather(const Words& mine) {
    const unsigned int me = running_, first = me / 32 * 32;
    words_[me] = mine;
    wait(warps_[me / 32]);
    std::array<Words, 32> all;
    for (unsigned int lane = 0; lane < 32; ++lane) all[lane] = words_[(first + lane) % words_.size()];
    wait(warps_[me / 32]);
    return all;
  }
  // 16 bytes, the first `bytes` of them from `from`; made when a wait no longer allows their group to be under way.
  void copy_later(void* to, const void* from, int bytes) { fibres_[running_].copies.back().push_back({to, from, bytes}); }
  void commit_copies() { fibres_[running_].copies.emplace_back(); }
  void wait_copies(size_t pending) {
    auto& groups = fibres_[running_].copies;  // the last one is not yet committed
    for (; groups.size() > pending + 1; groups.pop_front())
      for (const Copy& copy : groups.front()) {
        std::memset(copy.to, 0, 16);
        std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.bytes));
      }
  }
  static Block*& current() {
    static Block* block = nullptr;
    return block;
  }

 private:
  static constexpr size_t kStackBytes = 64 * 1024;
  struct Copy {
    void* to;
    const void* from;
    int bytes;
  };
  struct Fibre {
    ucontext_t context;
    bool done = false;
    std::deque<std::vector<Copy>> copies;  // groups, oldest first
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
  std::vector<Words> words_;
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
inline void __syncwarp() { cxxi_emulation::Block::current()->wait_warp(); }
template <class T>
T __shfl_xor_sync(unsigned int, T value, int mask) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = cxxi_emulation::Block::current()->exchange(bits, mask);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
T __shfl_sync(unsigned int all, T value, int lane) {
  return __shfl_xor_sync(all, value, static_cast<int>(threadIdx.x) % 32 ^ lane);
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
// Names that the host's math.h has too, for functions of its own.
#define __sinf cxxi_host_sin
#define __cosf cxxi_host_cos
#define __tanf cxxi_host_tan
#define __expf cxxi_host_exp
#define __logf cxxi_host_log
inline float cxxi_host_sin(float a) { return std::sin(a); }
inline float cxxi_host_cos(float a) { return std::cos(a); }
inline float cxxi_host_tan(float a) { return std::tan(a); }
inline float cxxi_host_exp(float a) { return std::exp(a); }
inline float cxxi_host_log(float a) { return std::log(a); }
template <class T>
void cxxi_host_sincospi(T a, T* sine, T* cosine) {
  *sine = std::sin(T(3.14159265358979323846) * a);
  *cosine = std::cos(T(3.14159265358979323846) * a);
}
inline void sincospif(float a, float* sine, float* cosine) { cxxi_host_sincospi(a, sine, cosine); }
inline void sincospi(double a, double* sine, double* cosine) { cxxi_host_sincospi(a, sine, cosine); }

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

// ---- Tensor cores, see kernels_templates/cuda/tensor_core.cuh ------------------------------------------------------
// All that a block may have; filled with NaNs before anything is stored.
struct alignas(1024) cxxi_shared_memory {
  unsigned char bytes[232448];
  cxxi_shared_memory() { std::memset(bytes, 0xff, sizeof bytes); }
};
#define CXXI_DYNAMIC_SHARED(name)           \
  static cxxi_shared_memory name##_storage; \
  unsigned char* const name = name##_storage.bytes
inline void cxxi_copy_async(void* to, const void* from, int bytes) {
  if (reinterpret_cast<uintptr_t>(to) % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0 || bytes < 0 || bytes > 16)
    std::abort();
  cxxi_emulation::Block::current()->copy_later(to, from, bytes);
}
inline void cxxi_commit_copies() { cxxi_emulation::Block::current()->commit_copies(); }
template <int Pending>
void cxxi_wait_copies() {
  cxxi_emulation::Block::current()->wait_copies(Pending);
}
template <bool Transposed>
void cxxi_gather_matrices(unsigned int (&words)[4], const void* row) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) std::abort();
  const auto rows = cxxi_emulation::Block::current()->gather({reinterpret_cast<uintptr_t>(row)});
  const auto element = [&](unsigned int matrix, unsigned int r, unsigned int c) {
    return static_cast<unsigned int>(reinterpret_cast<const unsigned short*>(rows[matrix * 8 + r][0])[c]);
  };
  const unsigned int lane = threadIdx.x % 32, r = lane / 4, c = lane % 4 * 2;
  for (unsigned int i = 0; i < 4; ++i)
    words[i] = Transposed ? element(i, c, r) | element(i, c + 1, r) << 16 : element(i, r, c) | element(i, r, c + 1) << 16;
}
inline void cxxi_load_matrices(unsigned int (&words)[4], const void* row) { cxxi_gather_matrices<false>(words, row); }
inline void cxxi_load_matrices_transposed(unsigned int (&words)[4], const void* row) {
  cxxi_gather_matrices<true>(words, row);
}
template <class T>
void cxxi_multiply_add(float (&sums)[4], const unsigned int (&left)[4], unsigned int right_low, unsigned int right_high, T) {
  const auto lanes =
      cxxi_emulation::Block::current()->gather({left[0], left[1], left[2], left[3], right_low, right_high});
  const auto half = [](uint64_t word, unsigned int which) {
    T value;
    value.bits = static_cast<unsigned short>(word >> 16 * which);
    return cxxi_to_float(value);
  };
  const unsigned int lane = threadIdx.x % 32;
  for (unsigned int e = 0; e < 4; ++e) {
    const unsigned int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
    for (unsigned int k = 0; k < 16; ++k) {
      const unsigned int holder = k % 8 / 2, upper = k / 8;
      const float a = half(lanes[row % 8 * 4 + holder][row / 8 + 2 * upper], k % 2);
      const float b = half(lanes[column * 4 + holder][4 + upper], k % 2);
      sums[e] += a * b;
    }
  }
}

// ---- Products of warp groups, see kernels_templates/cuda/warpgroup.cuh ---------------------------------------------
// They are computed when they are begun, from the places that the hardware reads.
struct cxxi_tile_descriptor {
  const char* start;
  int leading, stride, swizzle;
  // Of element `across` (of m or n), k; 16 bits each.
  const void* at(bool along_k, int across, int k) const {
    const int within = swizzle / 2;
    const char* plain = along_k ? start + across / 8 * stride + across % 8 * swizzle + k * 2
                                : start + across / within * leading + k / 8 * stride + k % 8 * swizzle + across % within * 2;
    const auto address = reinterpret_cast<uintptr_t>(plain);
    const uintptr_t chunks = static_cast<uintptr_t>(swizzle / 16 - 1);
    return reinterpret_cast<const void*>(address ^ (address >> 7 & chunks) << 4);
  }
};
inline cxxi_tile_descriptor cxxi_describe_tile(const void* start, int leading, int stride, int swizzle) {
  if (swizzle != 64 && swizzle != 128) std::abort();
  return {static_cast<const char*>(start), leading, stride, swizzle};
}
inline void cxxi_publish_stage() {}
inline void cxxi_begin_products() {}
inline void cxxi_commit_products() {}
template <int Pending>
void cxxi_wait_products() {}
inline void cxxi_settle(float&) {}
template <bool LeftAlongK, bool RightAlongK, int Groups, class T>
void cxxi_multiply_add_group(float (&sums)[Groups][4], cxxi_tile_descriptor left, cxxi_tile_descriptor right, T) {
  const auto value = [](const void* at) {
    T held;
    std::memcpy(&held, at, sizeof held);
    return cxxi_to_float(held);
  };
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4, lane = static_cast<int>(threadIdx.x) % 32;
  for (int j = 0; j < Groups; ++j)
    for (int e = 0; e < 4; ++e) {
      const int row = warp * 16 + e / 2 * 8 + lane / 4, column = j * 8 + lane % 4 * 2 + e % 2;
      for (int k = 0; k < 16; ++k) sums[j][e] += value(left.at(LeftAlongK, row, k)) * value(right.at(RightAlongK, column, k));
    }
}

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
