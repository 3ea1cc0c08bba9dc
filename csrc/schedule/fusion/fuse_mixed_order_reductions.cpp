#include "schedule/fusion/fuse_mixed_order_reductions.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "ir/loops/stmt_properties.h"
#include "ir/plan/serial_rows.h"
#include "ir/target.h"
#include "kernels/serial_rows/serial_rows.h"
#include "schedule/fusion/can_fuse.h"
#include "schedule/fusion/split_reduction.h"
#include "schedule/fusion/substitute.h"

namespace cxxinductor::schedule {
namespace {

using kernels::serial_row_shape;
using kernels::SerialRowNeeds;
using loops::Region;
using loops::Stmt;
using loops::StmtId;
using loops::VarId;
using loops::VarSet;

// Rows of one part: fewer would make the parts' sums a load of their own.
constexpr int64_t min_rows_of_part = 16;
// More of them would make long chains of additions, of which each loses a rounding.
constexpr int64_t max_rows_of_part = 512;
constexpr int parts_of_multiprocessor = 4;

// Rows of `over` are reduced and nothing else.
bool reduces_over(const Region& region, VarSet over) {
  return std::all_of(region.body.begin(), region.body.end(), [&](const Stmt& stmt) {
    const auto state = row_state(stmt);
    return !state || (is_known_after_row(stmt) && state->over == over);
  });
}

// Sums and the like.
bool only_sums(const Region& region) {
  return std::all_of(region.body.begin(), region.body.end(), [&](const Stmt& stmt) {
    const auto state = row_state(stmt);
    return !state || partials_of(state->reduction) == Partials::Fold;
  });
}

struct Shared {
  double bytes = 0;
  int widest = 1;
};

// Buffers of `least_bytes` and more that step a reads or makes and step b reads.
Shared shared_operands(const Dependencies& dependencies, const FusionCosts& costs, StepId a, StepId b, double least_bytes) {
  Shared shared;
  const auto& second = dependencies.summary(b).reads;
  for (const auto* first : {&dependencies.summary(a).reads, &dependencies.summary(a).writes}) {
    for (loops::BufferId buffer : *first) {
      const bool both = std::binary_search(second.begin(), second.end(), buffer);
      if (!both || costs.buffer_bytes(buffer) < least_bytes) continue;
      shared.bytes += costs.buffer_bytes(buffer);
      shared.widest = std::max(shared.widest, byte_size(dependencies.program().buffers[buffer].dtype));
    }
  }
  return shared;
}

// Which variable of the rows to cut, and into how many parts.
struct Cut {
  VarId var;
  int64_t parts = 1;
  double score = 0;
};

std::optional<Cut> choose_cut(const Region& region, VarSet rows, const Target& target) {
  int64_t total = 1;
  for (size_t v = 0; v < region.vars.size(); ++v) {
    if (!rows.contains(VarId(v))) continue;
    if (!region.vars[VarId(v)].extent.is_constant()) return std::nullopt;
    total *= region.vars[VarId(v)].extent.constant();
  }
  std::optional<Cut> best;
  const int64_t most_blocks = std::max(int64_t{parts_of_multiprocessor} * target.multiprocessors, 2 * (total / max_rows_of_part));
  for (size_t v = 0; v < region.vars.size(); ++v) {
    if (!rows.contains(VarId(v))) continue;
    const int64_t extent = region.vars[VarId(v)].extent.constant(), others = total / extent;
    for (int64_t parts = 1; parts <= extent; ++parts) {
      const int64_t blocks = others * parts;
      if (extent % parts != 0 || total / blocks < min_rows_of_part || total / blocks > max_rows_of_part) continue;
      if (blocks > most_blocks) break;
      // How evenly the machine is used, less the traffic of the parts' sums: written and read again in 4 bytes where a
      // row's element moves in about 6.
      const double waves = std::ceil(static_cast<double>(blocks) / target.multiprocessors);
      const double even = static_cast<double>(blocks) / (waves * target.multiprocessors);
      const double score = even - 8.0 / 6 * 2 * static_cast<double>(blocks) / static_cast<double>(total);
      if (!best || score > best->score) best = Cut{VarId(v), parts, score};
    }
  }
  return best && best->score > 0.5 ? best : std::nullopt;
}

class MixedOrderFuser {
 public:
  MixedOrderFuser(Dependencies& dependencies, const FusionCosts& costs, const Targets& targets, const Options& options, const MergeRules& rules,
                  FusionLimit& limit)
      : dependencies_(dependencies), costs_(costs), targets_(targets), options_(options), rules_(rules), limit_(limit) {}

  void run() {
    for (StepId step : dependencies_.order())
      if (dependencies_.alive(step) && reduces_across(step)) fuse(gather_across(step));
  }

 private:
  const loops::Program& program() const { return dependencies_.program(); }

  // The region of a step on a GPU that reduces, always over the same variables, and checks nothing.
  const Region* reducing(StepId step) const {
    const Region* region = dependencies_.region(step);
    if (!region || !is_simt(targets_.of(region->device))) return nullptr;
    const RegionSummary& summary = dependencies_.summary(step);
    const bool plain = !summary.reduced.empty() && summary.checks == 0 && reduces_over(*region, summary.reduced);
    return plain ? region : nullptr;
  }

  // Else the second launch costs less than what is read twice.
  bool is_worth_sharing(double bytes, StepId step) const { return bytes >= costs_.launch_cost(dependencies_.region(step)->device) / 2; }

  bool reduces_across(StepId step) const {
    const Region* region = reducing(step);
    return region && only_sums(*region) && reductions_come_last(*region) && reduces_across_columns(program(), *region);
  }

  bool reduces_along(StepId step) const {
    const Region* region = reducing(step);
    const RegionSummary& summary = dependencies_.summary(step);
    return region && !reduces_across_columns(program(), *region) && !intersect(summary.reads, summary.writes);
  }

  // Two steps in order that may be merged, with no path through another one; `between` is what a merge wants to know.
  struct Pair {
    StepId first, second;
    std::vector<StepId> between;
  };
  std::optional<Pair> neighbours(StepId a, StepId b) const {
    Pair pair{a, b, {}};
    if (!dependencies_.before(a, b)) std::swap(pair.first, pair.second);
    if (dependencies_.path_between(pair.first, pair.second, &pair.between) != Dependencies::Path::None) return std::nullopt;
    if (!rules_.blocker(pair.first, pair.second).empty()) return std::nullopt;
    return pair;
  }
  bool needs(StepId second, StepId first) const { return intersect(dependencies_.summary(first).writes, dependencies_.summary(second).reads); }

  // The region with others that reduce across the same rows and read what it reads, wherever they stand.
  StepId gather_across(StepId step) {
    for (bool joined = true; joined;) {
      joined = false;
      for (loops::BufferId buffer : std::vector(dependencies_.summary(step).reads)) {
        if (!is_worth_sharing(costs_.buffer_bytes(buffer), step)) continue;
        for (StepId other : dependencies_.readers(buffer)) {
          if (other == step || !reduces_across(other)) continue;
          const auto pair = neighbours(step, other);
          if (!pair || needs(step, other) || needs(other, step)) continue;
          FusedBody body = fuse_siblings(program(), *dependencies_.region(pair->first), *dependencies_.region(pair->second));
          if (!body.region || fusion_blocker(program(), *body.region, costs_, options_)) continue;
          if (!limit_.accept("merges", pair->first, pair->second)) return step;
          body.region->name.clear();
          step = dependencies_.merge(pair->first, pair->second, pair->between, std::move(*body.region));
          joined = true;
          break;
        }
        if (joined) break;
      }
    }
    return step;
  }

  // What a step that reduces along rows and one that reduces across them become.
  struct Joined {
    Pair pair;
    Region region;
    VarSet over_rows;
    Cut cut;
  };

  // Joins the step with one that reduces along its rows, then with others that reduce across them, and cuts the rows.
  void fuse(StepId across) {
    std::optional<Joined> joined = join_with_rows(across), last;
    StepId step;
    while (joined && limit_.accept("merges", joined->pair.first, joined->pair.second)) {
      joined->region.name.clear();
      step = dependencies_.merge(joined->pair.first, joined->pair.second, joined->pair.between, std::move(joined->region));
      last = std::move(joined);
      joined = join_with_columns(step);
    }
    if (last) split_serial_reduction(dependencies_, step, last->over_rows, last->cut.var, last->cut.parts);
  }

  std::optional<Joined> join_with_rows(StepId across) const {
    std::vector<StepId> candidates;
    for (loops::BufferId buffer : dependencies_.summary(across).reads) {
      if (!is_worth_sharing(costs_.buffer_bytes(buffer), across)) continue;
      if (const auto producer = dependencies_.producer(buffer)) candidates.push_back(*producer);
      for (StepId reader : dependencies_.readers(buffer)) candidates.push_back(reader);
    }
    return first_of(candidates, [&](StepId along) -> std::optional<Joined> {
      if (along == across || !reduces_along(along)) return std::nullopt;
      return join(along, across);
    });
  }

  std::optional<Joined> join_with_columns(StepId rows) const {
    std::vector<StepId> candidates;
    for (const auto* buffers : {&dependencies_.summary(rows).reads, &dependencies_.summary(rows).writes})
      for (loops::BufferId buffer : *buffers)
        if (is_worth_sharing(costs_.buffer_bytes(buffer), rows))
          for (StepId reader : dependencies_.readers(buffer)) candidates.push_back(reader);
    return first_of(candidates, [&](StepId across) -> std::optional<Joined> {
      if (across == rows || !reduces_across(across)) return std::nullopt;
      return join(rows, across);
    });
  }

  template <class Try>
  std::optional<Joined> first_of(const std::vector<StepId>& candidates, Try attempt) const {
    std::set<StepId> tried;
    for (StepId candidate : candidates)
      if (tried.insert(candidate).second)
        if (auto joined = attempt(candidate)) return joined;
    return std::nullopt;
  }

  std::optional<Joined> join(StepId along, StepId across) const {
    const Region &rows = *dependencies_.region(along), &columns = *dependencies_.region(across);
    auto pair = neighbours(along, across);
    if (rows.device != columns.device || !pair || needs(along, across)) return std::nullopt;
    const auto needed = [&](loops::BufferId buffer) { return dependencies_.has_other_users(buffer, along, across); };
    FusedBody body = needs(across, along) ? substitute_producer(program(), rows, columns, needed) : fuse_siblings(program(), rows, columns);
    if (!body.region || !body.aligned) return std::nullopt;
    const VarSet over_rows = over_of_columns(*body.region);
    if (over_rows.empty() || !is_complementary(*body.region, over_rows)) return std::nullopt;
    const auto cut = choose_cut(*body.region, over_rows, targets_.of(rows.device));
    if (!cut || !fits(*body.region, over_rows, along, across)) return std::nullopt;
    return Joined{std::move(*pair), std::move(*body.region), over_rows, *cut};
  }

  // What reductions of the joined region that read across contiguous elements run over.
  VarSet over_of_columns(const Region& joined) const {
    VarSet over;
    for (const Stmt& stmt : joined.body)
      if (const auto* reduce = stmt.as<loops::Reduce>(); reduce && !reads_contiguously(joined, reduce->over)) over |= reduce->over;
    return over;
  }

  bool reads_contiguously(const Region& region, VarSet over) const {
    for (const Stmt& stmt : region.body) {
      if (!stmt.as<loops::Load>() || (stmt.vars - over).empty() || (stmt.vars & over).empty()) continue;
      for (size_t v = 0; v < region.vars.size(); ++v)
        if (over.contains(VarId(v)) && access_stride(program(), region, stmt, VarId(v)) == 1) return true;
    }
    return false;
  }

  // Every reduction runs over all rows or over all columns.
  bool is_complementary(const Region& region, VarSet rows) const {
    const VarSet all = loops::all_vars(region);
    bool along = false, across = false;
    for (const Stmt& stmt : region.body) {
      const auto* reduce = stmt.as<loops::Reduce>();
      if (!reduce) continue;
      if (reduce->over == rows)
        across = true;
      else if (reduce->over == all - rows)
        along = true;
      else
        return false;
    }
    return along && across;
  }

  bool fits(const Region& region, VarSet over_rows, StepId along, StepId across) const {
    double length = 1;
    for (size_t v = 0; v < region.vars.size(); ++v) {
      if (over_rows.contains(VarId(v))) continue;
      if (!region.vars[VarId(v)].extent.is_constant()) return false;
      length *= static_cast<double>(region.vars[VarId(v)].extent.constant());
    }
    double all = length;
    for (size_t v = 0; v < region.vars.size(); ++v)
      if (over_rows.contains(VarId(v))) all *= static_cast<double>(region.vars[VarId(v)].extent.constant());
    const Shared shared = shared_operands(dependencies_, costs_, along, across, all);
    if (!is_worth_sharing(shared.bytes, across)) return false;
    SerialRowNeeds needs;
    int widest = shared.widest;
    for (const Stmt& stmt : region.body) {
      if (const auto* reduce = stmt.as<loops::Reduce>(); reduce && reduce->over == over_rows) needs.states.push_back(plan::state_dtype(region, *reduce));
      const auto* load = stmt.as<loops::Load>();
      if (!load || (stmt.vars & over_rows).empty() || (stmt.vars - over_rows).empty()) continue;
      needs.persistent_bytes += byte_size(stmt.dtype);
      widest = std::max(widest, byte_size(stmt.dtype));
    }
    const Target& target = targets_.of(region.device);
    needs.vector_width = std::max(1, target.vector_bytes / widest);
    if (static_cast<int64_t>(length) % needs.vector_width != 0) return false;
    needs.groups = static_cast<int64_t>(length) / needs.vector_width;
    return serial_row_shape(needs, target).has_value();
  }

  Dependencies& dependencies_;
  const FusionCosts& costs_;
  const Targets& targets_;
  const Options& options_;
  const MergeRules& rules_;
  FusionLimit& limit_;
};

}  // namespace

void fuse_mixed_order_reductions(Dependencies& dependencies, const FusionCosts& costs, const Targets& targets, const Options& options, const MergeRules& rules,
                                 FusionLimit& limit) {
  MixedOrderFuser(dependencies, costs, targets, options, rules, limit).run();
}

}  // namespace cxxinductor::schedule
