#include "schedule/fusion/walk_rows.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/plan/walk.h"
#include "schedule/fusion/can_fuse.h"
#include "schedule/fusion/split_reduction.h"
#include "schedule/fusion/substitute.h"
#include "schedule/plan/walk.h"

namespace cxxinductor::schedule {
namespace {

using loops::Region;
using loops::Stmt;
using loops::StmtId;
using loops::VarId;
using loops::VarSet;

// Below this the second launch costs less than what is read twice.
constexpr double min_shared_bytes = 4e6;
// Rows of one part: fewer would make the parts' sums a load of their own.
constexpr int64_t min_rows_of_part = 16;
constexpr int parts_of_multiprocessor = 4;

// All reductions run over `over`, and are sums and the like.
bool reduces_over(const Region& region, VarSet over) {
  return std::all_of(region.body.begin(), region.body.end(), [&](const Stmt& stmt) {
    const auto* reduce = stmt.as<loops::Reduce>();
    return !reduce || reduce->over == over;
  });
}

bool only_sums(const Region& region) {
  return std::all_of(region.body.begin(), region.body.end(), [&](const Stmt& stmt) {
    const auto* reduce = stmt.as<loops::Reduce>();
    return !reduce || (info(reduce->reduction).state == 1 && is_splittable(reduce->reduction));
  });
}

struct Shared {
  double bytes = 0;
  int widest = 1;
};

Shared shared_operands(const Dependencies& dependencies, const FusionCosts& costs, StepId a, StepId b, double row_bytes) {
  Shared shared;
  const auto &first = dependencies.facts(a).reads, &second = dependencies.facts(b).reads;
  for (loops::BufferId buffer : first) {
    if (!std::binary_search(second.begin(), second.end(), buffer) || costs.buffer_bytes(buffer) < row_bytes) continue;
    shared.bytes += costs.buffer_bytes(buffer);
    shared.widest = std::max(shared.widest, byte_size(dependencies.program().buffers[buffer].dtype));
  }
  return shared;
}

bool stores_in_place(const RegionFacts& facts) {
  return std::any_of(facts.reads.begin(), facts.reads.end(), [&](loops::BufferId buffer) {
    return std::binary_search(facts.writes.begin(), facts.writes.end(), buffer);
  });
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
  for (size_t v = 0; v < region.vars.size(); ++v) {
    if (!rows.contains(VarId(v))) continue;
    const int64_t extent = region.vars[VarId(v)].extent.constant(), others = total / extent;
    for (int64_t parts = 1; parts <= extent; ++parts) {
      const int64_t blocks = others * parts;
      if (extent % parts != 0 || total / blocks < min_rows_of_part) continue;
      if (blocks > int64_t{parts_of_multiprocessor} * target.multiprocessors) break;
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

class RowWalker {
 public:
  RowWalker(Dependencies& dependencies, const FusionCosts& costs, const Target& target, const Options& options)
      : dependencies_(dependencies), costs_(costs), target_(target), options_(options) {}

  void run() {
    for (StepId step : dependencies_.order())
      if (dependencies_.alive(step) && reduces_across(step)) join_with_rows(gather_across(step));
  }

 private:
  const loops::Program& program() const { return dependencies_.program(); }

  bool reduces_across(StepId step) const {
    const Region* region = dependencies_.region(step);
    return region && !dependencies_.facts(step).reduced.empty() && dependencies_.facts(step).checks == 0 &&
           reduces_over(*region, dependencies_.facts(step).reduced) && only_sums(*region) &&
           reductions_come_last(*region) && reduces_across_columns(program(), *region);
  }

  bool reduces_along(StepId step) const {
    const Region* region = dependencies_.region(step);
    return region && !dependencies_.facts(step).reduced.empty() && dependencies_.facts(step).checks == 0 &&
           reduces_over(*region, dependencies_.facts(step).reduced) && !reduces_across_columns(program(), *region) &&
           !stores_in_place(dependencies_.facts(step));
  }

  // The region with others that reduce across the same rows and read what it reads, wherever they stand.
  StepId gather_across(StepId step) {
    for (bool joined = true; joined;) {
      joined = false;
      for (loops::BufferId buffer : std::vector(dependencies_.facts(step).reads)) {
        if (costs_.buffer_bytes(buffer) < min_shared_bytes) continue;
        for (StepId other : dependencies_.readers(buffer)) {
          if (other == step || !reduces_across(other)) continue;
          const StepId first = dependencies_.before(step, other) ? step : other, second = first == step ? other : step;
          std::vector<StepId> between;
          if (dependencies_.path_between(first, second, &between) != Dependencies::Path::None) continue;
          if (depends(first, second) || depends(second, first)) continue;
          FusedBody body = join_siblings(program(), *dependencies_.region(first), *dependencies_.region(second));
          if (!body.region || refuse_region(program(), *body.region, costs_, options_)) continue;
          body.region->name.clear();
          step = dependencies_.merge(first, second, between, std::move(*body.region));
          joined = true;
          break;
        }
        if (joined) break;
      }
    }
    return step;
  }

  void join_with_rows(StepId across) {
    std::vector<StepId> tried;
    for (loops::BufferId buffer : dependencies_.facts(across).reads) {
      if (costs_.buffer_bytes(buffer) < min_shared_bytes) continue;
      for (StepId along : dependencies_.readers(buffer)) {
        if (along == across || std::find(tried.begin(), tried.end(), along) != tried.end()) continue;
        tried.push_back(along);
        if (reduces_along(along) && join(along, across)) return;
      }
    }
  }

  bool join(StepId along, StepId across) {
    const Region &rows = *dependencies_.region(along), &columns = *dependencies_.region(across);
    if (rows.device != columns.device) return false;
    const StepId first = dependencies_.before(along, across) ? along : across, second = first == along ? across : along;
    std::vector<StepId> between;
    if (dependencies_.path_between(first, second, &between) != Dependencies::Path::None) return false;
    if (depends(first, second) || depends(second, first)) return false;
    // The columns' region keeps its variables' names in what is joined.
    FusedBody joined = join_siblings(program(), rows, columns);
    if (!joined.region) return false;
    const VarSet over_rows = over_of_columns(*joined.region, columns);
    if (over_rows.empty() || !is_complementary(*joined.region, over_rows)) return false;
    const auto cut = choose_cut(*joined.region, over_rows, target_);
    if (!cut || !fits(*joined.region, over_rows, along, across)) return false;
    joined.region->name.clear();
    const StepId merged = dependencies_.merge(first, second, between, std::move(*joined.region));
    split_walk(dependencies_, merged, over_rows, cut->var, cut->parts);
    return true;
  }

  bool depends(StepId first, StepId second) const {
    const auto &writes = dependencies_.facts(first).writes, &reads = dependencies_.facts(second).reads;
    return std::any_of(writes.begin(), writes.end(), [&](loops::BufferId buffer) {
      return std::binary_search(reads.begin(), reads.end(), buffer);
    });
  }

  // What the columns' reductions run over in the joined region: its variables are the columns', perhaps split further.
  VarSet over_of_columns(const Region& joined, const Region& columns) const {
    VarSet over;
    for (const Stmt& stmt : joined.body) {
      const auto* reduce = stmt.as<loops::Reduce>();
      if (!reduce) continue;
      const bool splittable_rows = !reads_contiguously(joined, reduce->over);
      if (splittable_rows) over |= reduce->over;
    }
    return columns.vars.size() <= joined.vars.size() ? over : VarSet();
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
    VarSet all;
    for (size_t v = 0; v < region.vars.size(); ++v) all |= VarSet::of(VarId(v));
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
    if (shared.bytes < min_shared_bytes) return false;
    WalkNeeds needs;
    int widest = shared.widest;
    for (const Stmt& stmt : region.body) {
      if (const auto* reduce = stmt.as<loops::Reduce>(); reduce && reduce->over == over_rows)
        needs.states.push_back(plan::state_dtype(region, *reduce));
      const auto* load = stmt.as<loops::Load>();
      if (!load || (stmt.vars & over_rows).empty() || (stmt.vars - over_rows).empty()) continue;
      needs.resident_bytes += byte_size(stmt.dtype);
      widest = std::max(widest, byte_size(stmt.dtype));
    }
    needs.vector_width = std::max(1, target_.vector_bytes / widest);
    if (static_cast<int64_t>(length) % needs.vector_width != 0) return false;
    needs.groups = static_cast<int64_t>(length) / needs.vector_width;
    return walk_shape(needs, target_).has_value();
  }

  Dependencies& dependencies_;
  const FusionCosts& costs_;
  const Target& target_;
  const Options& options_;
};

}  // namespace

void walk_rows(Dependencies& dependencies, const FusionCosts& costs, const Target& target, const Options& options) {
  if (target.device == DeviceType::Cuda) RowWalker(dependencies, costs, target, options).run();
}

}  // namespace cxxinductor::schedule
