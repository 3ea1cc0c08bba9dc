#include "kernels/region/segments.h"

#include <algorithm>

#include "ir/loops/stmt_properties.h"

namespace cxxinductor::kernels {
namespace {

using loops::BufferId;
using loops::Stmt;
using loops::StmtId;
using plan::MemorySpace;
using plan::Segment;

// The levels of statements: a row-varying statement of level k can run in row loop k, another one just before it.
class Levels {
 public:
  explicit Levels(const FlatRegion& flat) : flat_(flat), at_least_(flat.region.body.size(), 0) { update(); }

  int of(size_t s) const { return level_[s]; }
  // The row loop that first needs a row-varying statement.
  const std::vector<int>& first() const { return first_; }
  int row_loops() const { return row_loops_; }
  void delay(size_t s, int level) {
    at_least_[s] = level;
    update();
  }

 private:
  void update() {
    const loops::Region& region = flat_.region;
    level_.assign(region.body.size(), 0);
    row_loops_ = 1;
    for (size_t s = 0; s < region.body.size(); ++s) {
      const Stmt& stmt = region.body[StmtId(s)];
      if (flat_.is_finishing(StmtId(s))) continue;  // after all row loops of all rows
      int level = at_least_[s];
      for (StmtId operand : operands(stmt)) {
        const int past_row_loop = is_known_after_row(region.body[operand]) ? 1 : 0;
        level = std::max(level, level_[operand.index()] + past_row_loop);
      }
      level = std::max(level, level_after_memory(s));
      level_[s] = level;
      if (flat_.is_row_varying(stmt)) row_loops_ = std::max(row_loops_, level + 1);
    }
    update_first();
  }

  // Accesses of one buffer, one of them a store, keep their order.
  int level_after_memory(size_t s) const {
    const Stmt& stmt = flat_.region.body[StmtId(s)];
    const auto* load = stmt.as<loops::Load>();
    const auto* store = stmt.as<loops::Store>();
    if (!load && !store) return 0;
    BufferId buffer = load ? load->buffer : store->buffer;
    int level = 0;
    for (size_t p = 0; p < s; ++p) {
      const Stmt& earlier = flat_.region.body[StmtId(p)];
      const auto* other_load = earlier.as<loops::Load>();
      const auto* other_store = earlier.as<loops::Store>();
      bool conflicts = (other_store && other_store->buffer == buffer) || (store && other_load && other_load->buffer == buffer);
      if (!conflicts) continue;
      // Effects of a row loop are visible to other elements of the row, and to what runs once per row, only when the loop ends.
      bool past_row_loop = flat_.is_row_varying(earlier) && !flat_.is_row_varying(stmt);
      level = std::max(level, level_[p] + (past_row_loop ? 1 : 0));
    }
    return level;
  }

  void update_first() {
    const loops::Region& region = flat_.region;
    first_.assign(region.body.size(), row_loops_);
    for (size_t s = region.body.size(); s-- > 0;) {
      const Stmt& stmt = region.body[StmtId(s)];
      if (!flat_.is_row_varying(stmt) || flat_.is_finishing(StmtId(s))) continue;
      if (is_executed_once(stmt)) first_[s] = level_[s];
      for (StmtId operand : operands(stmt)) first_[operand.index()] = std::min(first_[operand.index()], first_[s]);
    }
  }

  const FlatRegion& flat_;
  std::vector<int> at_least_;
  std::vector<int> level_, first_;
  int row_loops_ = 1;
};

// The statements of row loop k: what is executed there alone, what is kept there, and what those need.
std::vector<StmtId> list_row_loop(const FlatRegion& flat, const Levels& levels, const std::vector<bool>& persistent, int k) {
  const loops::Region& region = flat.region;
  std::vector<bool> listed(region.body.size());
  for (size_t s = region.body.size(); s-- > 0;) {
    const Stmt& stmt = region.body[StmtId(s)];
    if (!flat.is_row_varying(stmt) || flat.is_finishing(StmtId(s))) continue;
    const bool once = is_executed_once(stmt) || persistent[s];
    if (once && levels.first()[s] == k) listed[s] = true;
    if (!listed[s]) continue;
    for (StmtId operand : operands(stmt)) {
      size_t o = operand.index();
      const Stmt& value = region.body[operand];
      if (!flat.is_row_varying(value) || is_known_after_row(value)) continue;
      if (!(persistent[o] && levels.first()[o] < k)) listed[o] = true;
    }
  }
  std::vector<StmtId> stmts;
  for (size_t s = 0; s < listed.size(); ++s)
    if (listed[s]) stmts.push_back(StmtId(s));
  return stmts;
}

std::vector<StmtId> list_per_row(const FlatRegion& flat, const Levels& levels, int k) {
  std::vector<StmtId> stmts;
  for (size_t s = 0; s < flat.region.body.size(); ++s)
    if (!flat.is_row_varying(flat.region.body[StmtId(s)]) && levels.of(s) == k) stmts.push_back(StmtId(s));
  return stmts;
}

std::vector<Segment> list_segments(const FlatRegion& flat, const Levels& levels, const std::vector<bool>& persistent) {
  std::vector<Segment> segments;
  auto add = [&](Segment::Kind kind, std::vector<StmtId> stmts) {
    if (!stmts.empty()) segments.push_back({kind, std::move(stmts)});
  };
  for (int k = 0; k < levels.row_loops(); ++k) {
    add(Segment::Kind::PerRow, list_per_row(flat, levels, k));
    add(Segment::Kind::RowLoop, list_row_loop(flat, levels, persistent, k));
  }
  add(Segment::Kind::PerRow, list_per_row(flat, levels, levels.row_loops()));
  std::vector<StmtId> finishing;
  for (size_t s = 0; s < flat.region.body.size(); ++s)
    if (flat.is_finishing(StmtId(s))) finishing.push_back(StmtId(s));
  add(Segment::Kind::Epilogue, std::move(finishing));
  return segments;
}

// Raises the level of one store whose buffer a later row loop would load again, as it was before the store.
bool delay_a_store(const FlatRegion& flat, Levels& levels, const std::vector<bool>& persistent) {
  const loops::Region& region = flat.region;
  std::vector<int> last(region.body.size(), -1);
  for (int k = 0; k < levels.row_loops(); ++k)
    for (StmtId id : list_row_loop(flat, levels, persistent, k)) last[id.index()] = k;
  for (size_t s = 0; s < region.body.size(); ++s) {
    const auto* store = region.body[StmtId(s)].as<loops::Store>();
    if (!store) continue;
    for (size_t p = 0; p < s; ++p) {
      const auto* load = region.body[StmtId(p)].as<loops::Load>();
      if (!load || load->buffer != store->buffer || last[p] < 0) continue;
      int wanted = last[p] + (flat.is_row_varying(region.body[StmtId(s)]) ? 0 : 1);
      if (levels.of(s) >= wanted) continue;
      levels.delay(s, wanted);
      return true;
    }
  }
  return false;
}

int persistent_bytes(const FlatRegion& flat, const Levels& levels, const std::vector<bool>& persistent) {
  std::vector<int> last(flat.region.body.size(), -1);
  for (int k = 0; k < levels.row_loops(); ++k)
    for (StmtId id : list_row_loop(flat, levels, persistent, k))
      for (StmtId operand : operands(flat.region.body[id])) last[operand.index()] = k;
  int most = 0;
  for (int k = 0; k + 1 < levels.row_loops(); ++k) {
    int bytes = 0;
    for (size_t s = 0; s < persistent.size(); ++s)
      if (persistent[s] && levels.first()[s] <= k && last[s] > k) bytes += byte_size(flat.region.body[StmtId(s)].dtype);
    most = std::max(most, bytes);
  }
  return most;
}

Schedule single_row_loop(const FlatRegion& flat) {
  Schedule schedule;
  schedule.memory_spaces.resize(flat.region.body.size(), MemorySpace::Local);
  Segment row_loop;
  for (size_t s = 0; s < flat.region.body.size(); ++s) row_loop.stmts.push_back(StmtId(s));
  schedule.segments.push_back(std::move(row_loop));
  return schedule;
}

Schedule schedule_row_loops(const FlatRegion& flat, const Levels& levels, const std::vector<bool>& persistent) {
  Schedule schedule;
  schedule.segments = list_segments(flat, levels, persistent);
  schedule.persistent_bytes = persistent_bytes(flat, levels, persistent);
  schedule.memory_spaces.resize(flat.region.body.size(), MemorySpace::Local);
  for (size_t s = 0; s < persistent.size(); ++s) {
    const Stmt& stmt = flat.region.body[StmtId(s)];
    if (!is_effect(stmt) && (!flat.is_row_varying(stmt) || is_known_after_row(stmt))) schedule.memory_spaces[StmtId(s)] = MemorySpace::Row;
    if (persistent[s] || flat.is_across(StmtId(s))) schedule.memory_spaces[StmtId(s)] = MemorySpace::Persistent;
  }
  return schedule;
}

}  // namespace

Schedule schedule_looped(const FlatRegion& flat) {
  if (flat.row.empty()) return single_row_loop(flat);
  Levels levels(flat);
  std::vector<bool> none(flat.region.body.size());
  while (delay_a_store(flat, levels, none)) {
  }
  return schedule_row_loops(flat, levels, none);
}

Schedule schedule_persistent(const FlatRegion& flat, RematPolicy policy) {
  if (flat.row.empty()) return single_row_loop(flat);
  Levels levels(flat);
  std::vector<bool> persistent = choose_persistent_values(flat, levels.first(), policy);
  while (delay_a_store(flat, levels, persistent)) persistent = choose_persistent_values(flat, levels.first(), policy);
  return schedule_row_loops(flat, levels, persistent);
}

}  // namespace cxxinductor::kernels
