#include "schedule/plan/placement.h"

#include <algorithm>

namespace cxxinductor::schedule {
namespace {

constexpr double worth = 0.99;              // of the peak with an arena for all
constexpr double least_bytes = 1024 * 1024;  // an allocation of less costs more than it can save
constexpr double least_share = 1.0 / 512;    // of the peak

void add(std::vector<double>& timeline, const Resident& resident) {
  for (int t = resident.first; t <= resident.last; ++t) timeline[static_cast<size_t>(t)] += resident.bytes;
}

double largest(const std::vector<double>& timeline) {
  return timeline.empty() ? 0 : *std::max_element(timeline.begin(), timeline.end());
}

}  // namespace

std::vector<bool> choose_own_memory(std::span<const Resident> temporaries, std::span<const Resident> held,
                                    std::span<const Resident> inputs, int steps) {
  const std::vector<double> empty(static_cast<size_t>(steps), 0);
  std::vector<double> kept = empty, all = empty;
  for (const Resident& resident : held) add(kept, resident);
  for (const Resident& resident : temporaries) add(all, resident);
  std::vector<double> released = kept;
  for (const Resident& resident : inputs) add(released, resident);

  const double arena = largest(all), limit = std::max(least_bytes, least_share * (largest(released) + arena));
  std::vector<bool> own(temporaries.size(), false);
  std::vector<double> small = empty, large = empty;
  for (size_t i = 0; i < temporaries.size(); ++i) {
    own[i] = temporaries[i].bytes >= limit;
    add(own[i] ? large : small, temporaries[i]);
  }
  // Whether the caller keeps the inputs is not known: worth it if it is so in either case. It never costs memory.
  const auto saves = [&](const std::vector<double>& others) {
    std::vector<double> together = others;
    for (size_t t = 0; t < together.size(); ++t) together[t] += large[t];
    return largest(small) + largest(together) < worth * (largest(others) + arena);
  };
  if (!saves(kept) && !saves(released)) own.assign(temporaries.size(), false);
  return own;
}

}  // namespace cxxinductor::schedule
