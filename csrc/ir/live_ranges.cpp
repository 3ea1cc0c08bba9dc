#include "ir/live_ranges.h"

#include <algorithm>

#include "support/error.h"
#include "sym/integer.h"

namespace cxxinductor {
namespace {

constexpr int64_t most_bytes = int64_t{1} << 46, granularity = 512;

}  // namespace

MemoryPeak find_peak(std::span<const LiveRange> ranges) {
  int steps = 1;
  for (const LiveRange& range : ranges) steps = std::max(steps, range.last + 1);
  std::vector<int64_t> change(static_cast<size_t>(steps) + 1, 0);
  for (const LiveRange& range : ranges) {
    if (range.last < range.first) continue;
    change[static_cast<size_t>(range.first)] += range.bytes;
    change[static_cast<size_t>(range.last) + 1] -= range.bytes;
  }
  MemoryPeak peak;
  int64_t held = 0;
  for (int t = 0; t < steps; ++t) {
    held += change[static_cast<size_t>(t)];
    if (held > peak.bytes) peak = {held, t};
  }
  return peak;
}

DevicePeaks find_peaks(const DeviceRanges& ranges) {
  DevicePeaks peaks;
  for (const auto& [device, of_device] : ranges) peaks[device] = find_peak(of_device);
  return peaks;
}

int64_t total_bytes(const DevicePeaks& peaks) {
  int64_t bytes = 0;
  for (const auto& [device, peak] : peaks) bytes += peak.bytes;
  return bytes;
}

bool exceed(const DevicePeaks& peaks, const DevicePeaks& limits) {
  return std::any_of(peaks.begin(), peaks.end(), [&](const auto& of_device) {
    const auto limit = limits.find(of_device.first);
    return of_device.second.bytes > (limit == limits.end() ? 0 : limit->second.bytes);
  });
}

std::map<Device, int64_t> peaks_of(const DeviceRanges& ranges) {
  std::map<Device, int64_t> peaks;
  for (const auto& [device, peak] : find_peaks(ranges)) peaks[device] = peak.bytes;
  return peaks;
}

int64_t bytes_hint(sym::Expr bytes, const sym::Assumptions& assumptions) {
  try {
    return std::clamp<int64_t>(sym::estimate(bytes, assumptions), 0, most_bytes);
  } catch (const Error&) {
    return most_bytes;
  }
}

int64_t bytes_hint(DType dtype, std::span<const sym::Expr> sizes, std::span<const sym::Expr> strides, const sym::Assumptions& assumptions) {
  int64_t elements = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t size = bytes_hint(sizes[d], assumptions), stride = bytes_hint(strides[d], assumptions);
    if (size == 0) return 0;
    int64_t reach = 0;
    if (__builtin_mul_overflow(size - 1, stride, &reach) || __builtin_add_overflow(elements, reach, &elements)) return most_bytes;
  }
  return std::min(elements, most_bytes / 16) * byte_size(dtype);
}

int64_t share_hint(DType dtype, std::span<const sym::Expr> sizes, std::span<const sym::Expr> strides, const sym::Assumptions& assumptions) {
  sym::Expr elements = 1;
  for (sym::Expr size : sizes) elements = elements * size;
  return std::min(bytes_hint(dtype, sizes, strides, assumptions), bytes_hint(elements * byte_size(dtype), assumptions));
}

int64_t allocated(int64_t bytes) { return sym::ceil_quotient(bytes, granularity) * granularity; }

}  // namespace cxxinductor
