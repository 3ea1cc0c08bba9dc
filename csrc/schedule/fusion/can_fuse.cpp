#include "schedule/fusion/can_fuse.h"

#include <algorithm>

#include "schedule/fusion/dependencies.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

constexpr size_t max_buffers = 24;
constexpr size_t max_variables = 16;

using loops::Stmt;
using loops::StmtId;

std::optional<std::string> refuse_size(const loops::Region& region, const RegionFacts& facts, const Options& options) {
  if (region.body.size() > static_cast<size_t>(options.max_fused_statements))
    return fmt::format("the body would have {} statements, more than {}", region.body.size(),
                       options.max_fused_statements);
  std::vector<loops::BufferId> buffers;
  std::set_union(facts.reads.begin(), facts.reads.end(), facts.writes.begin(), facts.writes.end(),
                 std::back_inserter(buffers));
  if (buffers.size() > max_buffers) return fmt::format("{} buffers, more than {}", buffers.size(), max_buffers);
  if (region.vars.size() > max_variables)
    return fmt::format("{} variables, more than {}", region.vars.size(), max_variables);
  return std::nullopt;
}

// One row space for all reductions, each of them over whole rows, once a row.
std::optional<std::string> refuse_reductions(const loops::Region& region, const RegionFacts& facts) {
  for (const Stmt& stmt : region.body) {
    const auto* reduce = stmt.as<loops::Reduce>();
    if (!reduce) continue;
    if (reduce->over != facts.reduced) return "the reductions run over different variables";
    if (region.body[reduce->operand].vars != facts.all) return "a reduction would be repeated for every row";
  }
  return std::nullopt;
}

// Stores run at every point, or once a row.
std::optional<std::string> refuse_stores(const loops::Region& region, const RegionFacts& facts) {
  const loops::VarSet rows = facts.all - facts.reduced;
  for (const Stmt& stmt : region.body) {
    const auto* store = stmt.as<loops::Store>();
    if (!store || stmt.vars == facts.all || (!facts.reduced.empty() && stmt.vars == rows)) continue;
    return facts.reduced.empty() ? "a store does not vary over all variables of the space"
                                 : "a store varies over part of the rows' or elements' variables";
  }
  return std::nullopt;
}

// Where points of a store may meet, their order is one over the rows' variables: elements of rows are visited
// otherwise. On cores one thread makes all of them in turn, and should have little else to do.
std::optional<std::string> refuse_collisions(const loops::Region& region, const RegionFacts& facts) {
  const bool in_turn = region.device.type == DeviceType::Cpu;
  std::optional<sym::Expr> turns;
  for (const Stmt& stmt : region.body) {
    const auto* store = stmt.as<loops::Store>();
    if (!store || !store->each) continue;
    if (!(stmt.vars & facts.reduced).empty()) return "a scatter whose elements may meet would run inside rows";
    if (in_turn && facts.transcendental > 0) return "a scatter whose elements may meet runs on one thread";
    if (in_turn && turns.value_or(*store->each) != *store->each) return "two scatters have their turns in other orders";
    turns = store->each;
  }
  return std::nullopt;
}

// A buffer read and written in place: each point reads what it overwrites, before that, and nobody reads it again.
std::optional<std::string> refuse_in_place(const loops::Region& region, const RegionFacts& facts) {
  std::vector<loops::BufferId> both;
  std::set_intersection(facts.reads.begin(), facts.reads.end(), facts.writes.begin(), facts.writes.end(),
                        std::back_inserter(both));
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
      if (store_stmt->as<loops::Store>()->each) return "a buffer is read where elements that may meet are stored";
      if (load->coords != *stored) return "an input that is overwritten in place is read at other coordinates";
      // Two points may be sent to one place, though what they store there is alike.
      if (std::any_of(stored->begin(), stored->end(), loops::depends_on_data))
        return "an input is read where indices say that it is overwritten";
      // Sweeps over a row may compute their values again: what they read must not have changed.
      if (!facts.reduced.empty() && !(store_stmt->vars & facts.reduced).empty())
        return "an input that is overwritten in place is read by more than one sweep";
    }
  }
  return std::nullopt;
}

std::optional<std::string> refuse_rows(const loops::Program& program, const loops::Region& region,
                                       const RegionFacts& facts, const FusionCosts& costs) {
  if (facts.reduced.empty()) return std::nullopt;
  const std::vector<bool> late = depend_on_reductions(region);
  bool elements_after = false, stores_elements = false;
  for (size_t s = 0; s < region.body.size(); ++s) {
    const Stmt& stmt = region.body[StmtId(s)];
    elements_after = elements_after || (late[s] && (stmt.as<loops::Reduce>() || !(stmt.vars & facts.reduced).empty()));
    stores_elements = stores_elements || (stmt.as<loops::Store>() && stmt.vars == facts.all);
  }
  if (elements_after && reduces_across_columns(program, region))
    return "after a reduction across columns nothing may vary over what was reduced";
  if (costs.few_long_rows(region) && (elements_after || (stores_elements && !reductions_come_last(region))))
    return "few long rows: fusing would run element work on few multiprocessors";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> refuse_region(const loops::Program& program, const loops::Region& region,
                                         const FusionCosts& costs, const Options& options) {
  const RegionFacts facts = facts_of(region);
  if (auto reason = refuse_size(region, facts, options)) return reason;
  if (auto reason = refuse_reductions(region, facts)) return reason;
  if (auto reason = refuse_stores(region, facts)) return reason;
  if (auto reason = refuse_collisions(region, facts)) return reason;
  if (auto reason = refuse_in_place(region, facts)) return reason;
  return refuse_rows(program, region, facts, costs);
}

}  // namespace cxxinductor::schedule
