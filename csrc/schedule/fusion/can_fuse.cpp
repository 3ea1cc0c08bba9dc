#include "schedule/fusion/can_fuse.h"

#include <algorithm>

#include "ir/device_types.h"
#include "ir/loops/stmt_properties.h"
#include "schedule/fusion/dependencies.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

constexpr size_t max_buffers = 24;

using loops::Stmt;
using loops::StmtId;

std::optional<std::string> size_blocker(const loops::Region& region, const RegionSummary& summary, const Options& options) {
  if (region.body.size() > static_cast<size_t>(options.max_fusion_size))
    return fmt::format("the body would have {} statements, more than {}", region.body.size(), options.max_fusion_size);
  std::vector<loops::BufferId> buffers;
  std::set_union(summary.reads.begin(), summary.reads.end(), summary.writes.begin(), summary.writes.end(), std::back_inserter(buffers));
  if (buffers.size() > max_buffers) return fmt::format("{} buffers, more than {}", buffers.size(), max_buffers);
  if (region.vars.size() > max_variables) return fmt::format("{} variables, more than {}", region.vars.size(), max_variables);
  return std::nullopt;
}

// One row space for all reductions, each over whole rows, once per row.
std::optional<std::string> reduction_blocker(const loops::Region& region, const RegionSummary& summary) {
  for (const Stmt& stmt : region.body) {
    const auto state = row_state(stmt);
    if (!state) continue;
    if (!is_known_after_row(stmt)) return "a value depends on earlier points of its row";
    if (state->over != summary.reduced) return "the reductions run over different variables";
    if (region.body[state->operand].vars != summary.all) return "a reduction would be repeated for every row";
  }
  return std::nullopt;
}

// Stores run at every point, or once per row.
std::optional<std::string> store_blocker(const loops::Region& region, const RegionSummary& summary) {
  const loops::VarSet rows = summary.all - summary.reduced;
  for (const Stmt& stmt : region.body) {
    const auto* store = stmt.as<loops::Store>();
    if (!store || stmt.vars == summary.all || (!summary.reduced.empty() && stmt.vars == rows)) continue;
    return summary.reduced.empty() ? "a store does not vary over all variables of the space" : "a store varies over part of the rows' or elements' variables";
  }
  return std::nullopt;
}

// A store with write conflicts has an order over the rows' variables; elements within rows are visited in another order. Where
// eager's order counts, one thread executes all of its points in that order, so the region should have little other work.
std::optional<std::string> conflict_blocker(const loops::Region& region, const RegionSummary& summary) {
  const bool in_turn = info(region.device.type).scatters_in_order;
  std::optional<sym::Expr> conflict_order;
  for (const Stmt& stmt : region.body) {
    const auto* store = stmt.as<loops::Store>();
    if (!store || !store->conflict_order) continue;
    if (!(stmt.vars & summary.reduced).empty()) return "a scatter whose elements may meet would run inside rows";
    if (in_turn && summary.transcendental > 0) return "a scatter whose elements may meet runs on one thread";
    if (in_turn && conflict_order.value_or(*store->conflict_order) != *store->conflict_order) return "two scatters have their turns in other orders";
    conflict_order = store->conflict_order;
  }
  return std::nullopt;
}

// A buffer read and written in place: each point reads what it overwrites before the write, and no point reads it later.
std::optional<std::string> in_place_blocker(const loops::Region& region, const RegionSummary& summary) {
  std::vector<loops::BufferId> both;
  std::set_intersection(summary.reads.begin(), summary.reads.end(), summary.writes.begin(), summary.writes.end(), std::back_inserter(both));
  for (loops::BufferId buffer : both) {
    const std::vector<sym::Expr>* stored = nullptr;
    const Stmt* store_stmt = nullptr;
    for (const Stmt& stmt : region.body)
      if (const auto* store = stmt.as<loops::Store>(); store && store->buffer == buffer) {
        if (stored) return "a buffer that is overwritten in place is written twice";
        stored = &store->coords;
        store_stmt = &stmt;
      }
    bool stored_before = false;
    for (const Stmt& stmt : region.body) {
      stored_before = stored_before || &stmt == store_stmt;
      const auto* load = stmt.as<loops::Load>();
      if (!load || load->buffer != buffer) continue;
      if (stored_before) return "an input is read after it is overwritten";
      if (store_stmt->as<loops::Store>()->conflict_order) return "a buffer is read where elements that may meet are stored";
      if (load->coords != *stored) return "an input that is overwritten in place is read at other coordinates";
      // Two points may write one element, although they store equal values there.
      if (std::any_of(stored->begin(), stored->end(), loops::depends_on_data)) return "an input is read where indices say that it is overwritten";
      // Row loops may recompute values: what they read must not have changed.
      if (!summary.reduced.empty() && !(store_stmt->vars & summary.reduced).empty())
        return "an input that is overwritten in place is read by more than one row loop";
    }
  }
  return std::nullopt;
}

std::optional<std::string> row_blocker(const loops::Program& program, const loops::Region& region, const RegionSummary& summary, const FusionCosts& costs) {
  if (summary.reduced.empty()) return std::nullopt;
  const std::vector<bool> late = depend_on_reductions(region);
  bool elements_after = false, stores_elements = false;
  for (size_t s = 0; s < region.body.size(); ++s) {
    const Stmt& stmt = region.body[StmtId(s)];
    elements_after = elements_after || (late[s] && (row_state(stmt) || !(stmt.vars & summary.reduced).empty()));
    stores_elements = stores_elements || (stmt.as<loops::Store>() && stmt.vars == summary.all);
  }
  if (elements_after && reduces_across_columns(program, region)) return "after a reduction across columns nothing may vary over what was reduced";
  if (costs.few_long_rows(region) && (elements_after || (stores_elements && !reductions_come_last(region))))
    return "few long rows: fusing would run element work on few multiprocessors";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> fusion_blocker(const loops::Program& program, const loops::Region& region, const FusionCosts& costs, const Options& options) {
  const RegionSummary summary = summarize(region);
  if (auto reason = size_blocker(region, summary, options)) return reason;
  if (auto reason = reduction_blocker(region, summary)) return reason;
  if (auto reason = store_blocker(region, summary)) return reason;
  if (auto reason = conflict_blocker(region, summary)) return reason;
  if (auto reason = in_place_blocker(region, summary)) return reason;
  return row_blocker(program, region, summary, costs);
}

}  // namespace cxxinductor::schedule
