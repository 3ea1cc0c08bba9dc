#include "schedule/fusion/live_range_budget.h"

#include <algorithm>

namespace cxxinductor::schedule {

using loops::BufferId;

// Bytes of buffers that would have died more than the limit before `until` if they were not read there too. `besides` does
// not count among their other readers.
double LiveRangeBudget::reads_kept(const std::vector<BufferId>& reads, StepId until, StepId besides) const {
  double bytes = 0;
  for (BufferId buffer : reads) {
    if (!dependencies_.dies(buffer)) continue;
    size_t last = 0;
    if (const auto producer = dependencies_.producer(buffer)) last = dependencies_.place(*producer);
    bool read_there = false;
    for (StepId reader : dependencies_.readers(buffer)) {
      read_there = read_there || reader == until;
      if (reader != besides) last = std::max(last, dependencies_.place(reader));
    }
    if (!read_there && far(last, dependencies_.place(until))) bytes += costs_.buffer_bytes(buffer);
  }
  return bytes;
}

double LiveRangeBudget::writes(StepId id) const {
  double bytes = 0;
  for (BufferId buffer : dependencies_.summary(id).writes) bytes += costs_.buffer_bytes(buffer);
  return bytes;
}

bool LiveRangeBudget::allow_inlining(const std::vector<BufferId>& reads, BufferId buffer, StepId reader) const {
  if (!limit_) return true;
  const double kept = reads_kept(reads, reader, {});
  if (kept == 0) return true;
  // The inlined buffer dies with the last of its other readers.
  size_t last = 0;
  if (const auto producer = dependencies_.producer(buffer)) last = dependencies_.place(*producer);
  for (StepId other : dependencies_.readers(buffer))
    if (other != reader) last = std::max(last, dependencies_.place(other));
  const bool saves = dependencies_.dies(buffer) && far(last, dependencies_.place(reader));
  return kept <= (saves ? costs_.buffer_bytes(buffer) : 0);
}

bool LiveRangeBudget::allow_merge(StepId first, StepId second) const {
  if (!limit_ || !far(dependencies_.place(first), dependencies_.place(second))) return true;
  // At the place of the second, where nothing in between reads what the first writes.
  const auto reads_between = [&](BufferId buffer) {
    const std::vector<StepId> readers = dependencies_.readers(buffer);
    return std::any_of(readers.begin(), readers.end(), [&](StepId reader) {
      return reader != first && reader != second && dependencies_.place(reader) < dependencies_.place(second);
    });
  };
  const std::vector<BufferId>& written = dependencies_.summary(first).writes;
  const bool may_wait = std::none_of(written.begin(), written.end(), reads_between);
  if (may_wait && reads_kept(dependencies_.summary(first).reads, second, first) <= writes(first)) return true;
  // At the place of the first: what the second reads dies there where nobody else reads it later.
  double early = writes(second);
  for (BufferId buffer : dependencies_.summary(second).reads) {
    const std::vector<StepId> readers = dependencies_.readers(buffer);
    const bool last = std::all_of(readers.begin(), readers.end(), [&](StepId reader) {
      return reader == second || dependencies_.place(reader) <= dependencies_.place(first);
    });
    if (dependencies_.dies(buffer) && last) early -= costs_.buffer_bytes(buffer);
  }
  return early <= 0;
}

}  // namespace cxxinductor::schedule
