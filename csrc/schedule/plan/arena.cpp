#include "schedule/plan/arena.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "sym/integer.h"

namespace cxxinductor::schedule {
namespace {

using sym::Expr;

// A request as a count of units.
struct Measured {
  Expr unit;
  int64_t count = 0;
};

int64_t align(int64_t bytes) { return sym::ceil_quotient(bytes, arena_alignment) * arena_alignment; }

Measured measure(Expr bytes) {
  if (bytes.is_constant()) return {1, align(std::max<int64_t>(bytes.constant(), 0))};
  std::vector<sym::Term> terms = linear_terms(bytes);
  // Counts that are multiples of the alignment keep every offset aligned; small ones would waste by rounding up.
  if (terms.size() == 1 && terms[0].coefficient >= arena_alignment) return {terms[0].monomial, align(terms[0].coefficient)};
  return {ceil_div(bytes, arena_alignment) * arena_alignment, 1};
}

struct Placed {
  int64_t offset, end;
  int first, last;
};

// The start of the smallest gap between conflicting neighbours that holds `count`, or the end of the last of them.
int64_t find_place(const std::vector<Placed>& placed, const ArenaRequest& request, int64_t count) {
  std::vector<std::pair<int64_t, int64_t>> conflicts;
  for (const Placed& other : placed)
    if (other.first <= request.last && request.first <= other.last) conflicts.emplace_back(other.offset, other.end);
  std::sort(conflicts.begin(), conflicts.end());
  int64_t best = -1, best_gap = std::numeric_limits<int64_t>::max(), free_from = 0;
  for (auto [offset, end] : conflicts) {
    int64_t gap = offset - free_from;
    if (gap >= count && gap < best_gap) {
      best = free_from;
      best_gap = gap;
    }
    free_from = std::max(free_from, end);
  }
  return best >= 0 ? best : free_from;
}

}  // namespace

ArenaLayout plan_arena(std::span<const ArenaRequest> requests) {
  std::vector<Measured> measured;
  std::map<Expr, std::vector<size_t>, sym::Less> parts;
  for (size_t r = 0; r < requests.size(); ++r) {
    measured.push_back(measure(requests[r].bytes));
    parts[measured.back().unit].push_back(r);
  }
  ArenaLayout layout;
  layout.offsets.resize(requests.size());
  for (auto& [unit, members] : parts) {
    std::stable_sort(members.begin(), members.end(), [&](size_t a, size_t b) { return measured[a].count > measured[b].count; });
    std::vector<Placed> placed;
    int64_t top = 0;
    for (size_t r : members) {
      int64_t offset = find_place(placed, requests[r], measured[r].count);
      placed.push_back({offset, offset + measured[r].count, requests[r].first, requests[r].last});
      layout.offsets[r] = layout.bytes + unit * offset;
      top = std::max(top, placed.back().end);
    }
    layout.bytes = layout.bytes + unit * top;
  }
  return layout;
}

}  // namespace cxxinductor::schedule
