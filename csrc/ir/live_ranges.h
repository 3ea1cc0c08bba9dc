// Memory over the steps of a run: which blocks are there when, and the most that is there at once.
//
// Everything that is said about memory (what a plan holds, what eager would hold, which buffer goes where, which order is
// better) is a list of live ranges and its peak. Sizes with symbols are taken at typical values (sym::estimate).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>
#include <vector>

#include "ir/dtype.h"
#include "sym/simplify.h"

namespace cxxinductor {

struct LiveRange {
  int64_t bytes = 0;
  int first = 0, last = 0;  // steps, both inclusive
};

struct MemoryPeak {
  int64_t bytes = 0;
  int step = 0;  // the earliest that holds most
};

MemoryPeak find_peak(std::span<const LiveRange> ranges);
// Bytes at most, of each device that has ranges.
std::map<Device, int64_t> peaks_of(const std::map<Device, std::vector<LiveRange>>& ranges);

// Bytes at typical sizes, never negative; at most 2^46, which is also what overflows, so that sums stay exact.
int64_t bytes_hint(sym::Expr bytes, const sym::Assumptions& assumptions);
// From a tensor's first element to past its last.
int64_t bytes_hint(DType dtype, std::span<const sym::Expr> sizes, std::span<const sym::Expr> strides,
                      const sym::Assumptions& assumptions);
// What an input accounts for: views of one storage share it, so that none counts for more than its own elements.
int64_t share_hint(DType dtype, std::span<const sym::Expr> sizes, std::span<const sym::Expr> strides,
                      const sym::Assumptions& assumptions);
// What torch's allocators take for a block of so many bytes.
int64_t allocated(int64_t bytes);

}  // namespace cxxinductor
