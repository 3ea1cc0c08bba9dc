// Memory over the steps of a run: live ranges of blocks, and their peak.
//
// Every decision and report about memory (plans, eager, placement, order) uses a list of live ranges and its peak. Sizes with
// symbols enter as size hints (sym::estimate).
#pragma once

#include <cstdint>
#include <map>
#include <span>
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
  int step = 0;  // the earliest at the peak
};

MemoryPeak find_peak(std::span<const LiveRange> ranges);

// By the device that has the memory. What one device has to spare is of no use to another, so a decision compares them device by device.
using DeviceRanges = std::map<Device, std::vector<LiveRange>>;
using DevicePeaks = std::map<Device, MemoryPeak>;
DevicePeaks find_peaks(const DeviceRanges& ranges);
int64_t total_bytes(const DevicePeaks& peaks);
// Some device has a higher peak than in `limits`.
bool exceed(const DevicePeaks& peaks, const DevicePeaks& limits);
// Peak bytes of each device that has ranges.
std::map<Device, int64_t> peaks_of(const DeviceRanges& ranges);

// Bytes at size hints, between 0 and 2^46; overflows count as 2^46, so that sums stay exact.
int64_t bytes_hint(sym::Expr bytes, const sym::Assumptions& assumptions);
// From a tensor's first element to past its last.
int64_t bytes_hint(DType dtype, std::span<const sym::Expr> sizes, std::span<const sym::Expr> strides, const sym::Assumptions& assumptions);
// Bytes of an input: views of one storage share it, so none counts for more than its own elements.
int64_t share_hint(DType dtype, std::span<const sym::Expr> sizes, std::span<const sym::Expr> strides, const sym::Assumptions& assumptions);
// Bytes that torch's allocators reserve for a block of so many bytes.
int64_t allocated(int64_t bytes);

}  // namespace cxxinductor
