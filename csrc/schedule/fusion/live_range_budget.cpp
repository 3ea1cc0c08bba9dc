#include "schedule/fusion/live_range_budget.h"

#include <algorithm>

namespace cxxinductor::schedule {

using loops::BufferId;

// Where the last step stands that needs the buffer, `besides` left out; what nothing else reads is needed where it is made.
size_t LiveRangeBudget::last_use(BufferId buffer, StepId besides) const {
  size_t last = 0;
  for (const std::vector<StepId>& users : {dependencies_.writers(buffer), dependencies_.readers(buffer)})
    for (StepId user : users)
      if (user != besides) last = std::max(last, dependencies_.place(user));
  return last;
}

// Bytes of buffers that would have died more than the limit before `until` if they were not read there too. `besides` does
// not count among their other readers.
double LiveRangeBudget::reads_kept(const std::vector<BufferId>& reads, StepId until, StepId besides) const {
  double bytes = 0;
  for (BufferId buffer : reads) {
    const std::vector<BufferId>& read_there = dependencies_.summary(until).reads;
    if (!dependencies_.dies(buffer) || std::binary_search(read_there.begin(), read_there.end(), buffer)) continue;
    if (far(last_use(buffer, besides), dependencies_.place(until))) bytes += costs_.buffer_bytes(buffer);
  }
  return bytes;
}

// Whether `second` reads what a step between the two writes.
bool LiveRangeBudget::made_between(BufferId buffer, StepId first, StepId second) const {
  const std::vector<StepId> writers = dependencies_.writers(buffer);
  return std::any_of(writers.begin(), writers.end(),
                     [&](StepId writer) { return dependencies_.before(writer, second) && dependencies_.place(writer) > dependencies_.place(first); });
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
  const bool saves = dependencies_.dies(buffer) && far(last_use(buffer, reader), dependencies_.place(reader));
  return kept <= (saves ? costs_.buffer_bytes(buffer) : 0);
}

bool LiveRangeBudget::allow_merge(StepId first, StepId second) const {
  if (!limit_ || !far(dependencies_.place(first), dependencies_.place(second))) return true;
  // At the place of the second, where nothing in between reads what the first writes.
  const auto reads_between = [&](BufferId buffer) {
    const std::vector<StepId> readers = dependencies_.readers(buffer);
    return std::any_of(readers.begin(), readers.end(),
                       [&](StepId reader) { return reader != first && reader != second && dependencies_.place(reader) < dependencies_.place(second); });
  };
  const std::vector<BufferId>& written = dependencies_.summary(first).writes;
  const bool may_wait = std::none_of(written.begin(), written.end(), reads_between);
  if (may_wait && reads_kept(dependencies_.summary(first).reads, second, first) <= writes(first)) return true;
  // At the place of the first, where all that the second reads exists: it dies there where nobody else reads it later.
  double early = writes(second);
  for (BufferId buffer : dependencies_.summary(second).reads) {
    if (made_between(buffer, first, second)) return false;
    const std::vector<StepId> readers = dependencies_.readers(buffer);
    const bool last = std::all_of(readers.begin(), readers.end(),
                                  [&](StepId reader) { return reader == second || dependencies_.place(reader) <= dependencies_.place(first); });
    if (dependencies_.dies(buffer) && last) early -= costs_.buffer_bytes(buffer);
  }
  return early <= 0;
}

}  // namespace cxxinductor::schedule
