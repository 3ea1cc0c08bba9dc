// Number of threads of ATen's random kernels, on which their numbers depend: blocks of 256 threads, at most as many as are
// resident at once (calc_execution_policy in ATen/native/cuda/DistributionTemplates.h and dropout_cuda, torch 2.11).
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/target.h"
#include "sym/integer.h"

namespace cxxinductor {

// Threads that draw `count` numbers; at least one block of them.
inline int64_t random_threads(int64_t count, const Target& target) {
  constexpr int64_t block = 256;
  const int64_t resident = target.multiprocessors * (target.threads_per_multiprocessor / block);
  return block * std::max<int64_t>(1, std::min(resident, sym::ceil_quotient(count, block)));
}

}  // namespace cxxinductor
