#include "schedule/plan/placement.h"

#include <algorithm>

namespace cxxinductor::schedule {
namespace {

// Tolerance above the lowest peak: a separate allocation costs the host more than these bytes are worth.
constexpr int64_t tolerated_bytes = 1024 * 1024, tolerated_share = 1024;

class Timeline {
 public:
  explicit Timeline(int steps) : bytes_(static_cast<size_t>(steps), 0) {}
  void add(const LiveRange& range, int64_t bytes) {
    for (int t = range.first; t <= range.last; ++t) bytes_[static_cast<size_t>(t)] += bytes;
  }
  int fullest() const { return static_cast<int>(std::max_element(bytes_.begin(), bytes_.end()) - bytes_.begin()); }
  int64_t peak() const { return bytes_[static_cast<size_t>(fullest())]; }

 private:
  std::vector<int64_t> bytes_;
};

}  // namespace

std::vector<bool> choose_standalone(std::span<const LiveRange> temporaries, std::span<const LiveRange> held, int64_t bound) {
  std::vector<bool> own(temporaries.size(), false);
  int steps = 1;
  for (const auto& ranges : {temporaries, held})
    for (const LiveRange& range : ranges) steps = std::max(steps, range.last + 1);
  Timeline arena(steps), rest(steps), all(steps);
  for (const LiveRange& range : temporaries) {
    arena.add(range, range.bytes);
    all.add(range, allocated(range.bytes));
  }
  for (const LiveRange& range : held) {
    rest.add(range, allocated(range.bytes));
    all.add(range, allocated(range.bytes));
  }

  const auto peak = [&] { return allocated(arena.peak()) + rest.peak(); };
  const int64_t attainable = all.peak();
  std::vector<size_t> moved;
  std::vector<int64_t> peaks{peak()};
  while (peaks.back() > attainable && arena.peak() > 0) {
    const int fullest = arena.fullest();
    size_t largest = temporaries.size();
    for (size_t i = 0; i < temporaries.size(); ++i) {
      const bool there = !own[i] && temporaries[i].first <= fullest && fullest <= temporaries[i].last;
      if (there && (largest == temporaries.size() || temporaries[i].bytes > temporaries[largest].bytes)) largest = i;
    }
    own[largest] = true;
    moved.push_back(largest);
    arena.add(temporaries[largest], -temporaries[largest].bytes);
    rest.add(temporaries[largest], allocated(temporaries[largest].bytes));
    peaks.push_back(peak());
  }
  // The fewest moves that come near the lowest peak and, if possible, stay within the bound.
  const int64_t best = *std::min_element(peaks.begin(), peaks.end());
  const int64_t near = best + std::max(tolerated_bytes, best / tolerated_share);
  const int64_t wanted = std::max(best, std::min(near, bound));
  size_t enough = 0;
  while (peaks[enough] > wanted) ++enough;
  for (size_t k = enough; k < moved.size(); ++k) own[moved[k]] = false;
  return own;
}

}  // namespace cxxinductor::schedule
