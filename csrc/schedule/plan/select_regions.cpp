#include "schedule/plan/select_regions.h"

#include <algorithm>
#include <set>

#include "ir/live_ranges.h"
#include "ir/loops/index_algebra.h"
#include "schedule/fusion/dependencies.h"
#include "schedule/fusion/substitute.h"
#include "schedule/plan/liveness.h"
#include "schedule/plan/partition_region.h"

namespace cxxinductor::schedule {
namespace {

using loops::Region;
using loops::Stmt;
using loops::StmtId;
using loops::VarId;
using sym::Expr;

constexpr size_t most_pieces = 256;

bool stores_all(const loops::Program& program, const Region& region, loops::BufferId result) {
  const loops::Store* found = nullptr;
  for (const Stmt& stmt : region.body)
    if (const auto* store = stmt.as<loops::Store>()) {
      if (found) return false;
      found = store;
    }
  return found && !found->mask.valid() && !found->update &&
         loops::Space(region, program.assumptions).is_bijection(found->coords, program.buffers[result].sizes);
}

// The strides at which `coords`, in this order, reach the elements that lie at `offset`, which is left at the first.
bool solve_strides(const IdVector<VarId, loops::Var>& vars, const std::vector<Expr>& coords, const sym::Assumptions& assumptions, Expr& offset,
                   std::vector<Expr>& strides) {
  std::vector<bool> solved(strides.size(), false);
  for (const loops::Var& var : vars) {
    const Expr symbol = Expr::symbol(var.name);
    const auto dim = only_coordinate(coords, symbol);
    Expr step, rest, weight, others;
    if (!dim || !sym::split_linear(offset, symbol, &step, &rest) || !sym::split_linear(coords[*dim], symbol, &weight, &others)) return false;
    offset = rest;
    const auto stride = loops::exact_quotient(step, weight);
    if (!stride || (solved[*dim] && !sym::prove_equal(strides[*dim], *stride, assumptions))) return false;
    if (!solved[*dim]) strides[*dim] = sym::simplify(loops::expand(*stride), assumptions);
    solved[*dim] = true;
  }
  offset = sym::simplify(offset, assumptions);
  return true;
}

class Finder {
 public:
  Finder(const loops::Program& program, const SelectRegion& select, const std::function<bool(loops::BufferId)>& is_operand)
      : program_(program), select_(select), is_operand_(is_operand) {}

  std::vector<SelectRange> ranges_along(VarId var) const {
    std::vector<SelectRange> ranges;
    const std::vector<Expr> boundaries = find_boundaries(select_.region, var, assumptions());
    if (boundaries.size() < 3 || boundaries.size() > most_pieces) return ranges;
    std::set<loops::BufferId> taken;
    for (size_t i = 0; i + 1 < boundaries.size(); ++i) {
      const Expr extent = sym::simplify(loops::expand(boundaries[i + 1] - boundaries[i]), assumptions());
      SelectRange range{boundaries[i], extent, {}, {}, {}};
      match(var, range);
      if (range.operand.valid() && !taken.insert(range.operand).second) range.operand = {};
      ranges.push_back(std::move(range));
    }
    return ranges;
  }

  int64_t bytes_of(const std::vector<SelectRange>& ranges) const {
    int64_t bytes = 0;
    for (const SelectRange& range : ranges)
      if (range.operand.valid()) bytes += schedule::bytes_of(program_, range.operand);
    return bytes;
  }

 private:
  const sym::Assumptions& assumptions() const { return program_.assumptions; }

  // Sets the operand and its strides if the range holds exactly its elements.
  void match(VarId var, SelectRange& range) const {
    const Region cut = partition_region(select_.region, var, range.begin, range.extent, assumptions());
    if (cut.body.size() != 2) return;
    const auto* load = cut.body[StmtId(0)].as<loops::Load>();
    const auto* store = cut.body[StmtId(1)].as<loops::Store>();
    if (!load || !store || load->mask.valid() || store->value != StmtId(0) || !is_operand_(load->buffer)) return;
    const loops::Buffer &from = program_.buffers[load->buffer], &to = program_.buffers[select_.result];
    const loops::Space space(cut, assumptions());
    if (from.dtype != to.dtype || from.device != to.device || !space.is_bijection(load->coords, from.sizes)) return;
    Expr offset = 0;
    for (size_t d = 0; d < store->coords.size(); ++d) offset = offset + store->coords[d] * to.strides[d];
    offset = loops::expand(space.simplify(offset));
    std::vector<Expr> strides = from.strides;
    if (!solve_strides(cut.vars, load->coords, assumptions(), offset, strides)) return;
    range.operand = load->buffer;
    range.strides = std::move(strides);
    range.offset = offset;
  }

  const loops::Program& program_;
  const SelectRegion& select_;
  const std::function<bool(loops::BufferId)>& is_operand_;
};

}  // namespace

std::optional<SelectRegion> find_select_region(const loops::Program& program, size_t step, loops::BufferId result,
                                               const std::function<bool(loops::BufferId)>& is_operand) {
  const Region& region = std::get<Region>(program.steps[step]);
  const RegionSummary summary = summarize(region);
  if (program.buffers[result].role == loops::Buffer::Role::Input || loops::serial_var(region).valid() || summary.checks > 0 ||
      std::binary_search(summary.reads.begin(), summary.reads.end(), result) || std::none_of(summary.reads.begin(), summary.reads.end(), is_operand))
    return std::nullopt;
  const bool alone = summary.writes.size() == 1;
  SelectRegion select{step, result, alone ? region : slice_for_store(program, region, result), alone, {}, {}};
  if (!reduced_vars(select.region).empty() || !stores_all(program, select.region, result)) return std::nullopt;
  const Finder finder(program, select, is_operand);
  for (size_t v = 0; v < select.region.vars.size(); ++v) {
    std::vector<SelectRange> ranges = finder.ranges_along(VarId(v));
    if (finder.bytes_of(ranges) <= finder.bytes_of(select.ranges)) continue;
    select.var = VarId(v);
    select.ranges = std::move(ranges);
  }
  if (select.ranges.empty()) return std::nullopt;
  return select;
}

std::vector<std::pair<Expr, Expr>> uncovered_ranges(const SelectRegion& select) {
  std::vector<std::pair<Expr, Expr>> uncovered;
  bool open = false;
  for (const SelectRange& range : select.ranges) {
    if (!range.operand.valid() && open) uncovered.back().second = uncovered.back().second + range.extent;
    if (!range.operand.valid() && !open) uncovered.emplace_back(range.begin, range.extent);
    open = !range.operand.valid();
  }
  return uncovered;
}

std::optional<size_t> only_coordinate(const std::vector<Expr>& coords, Expr symbol) {
  std::optional<size_t> found;
  for (size_t d = 0; d < coords.size(); ++d) {
    if (!coords[d].depends_on(symbol)) continue;
    if (found) return std::nullopt;
    found = d;
  }
  return found;
}

}  // namespace cxxinductor::schedule
