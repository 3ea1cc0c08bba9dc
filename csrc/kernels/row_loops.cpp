#include "kernels/row_loops.h"

#include <algorithm>

#include "ir/loops/stmt_properties.h"
#include "ir/plan/serial_rows.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/slots.h"
#include "support/error.h"

namespace cxxinductor::kernels {
namespace {

using sym::Expr;

class RowLoops {
 public:
  RowLoops(const plan::Kernel& kernel, RowThreads shape)
      : kernel_(kernel),
        row_(kernel.mapping.row),
        threads_(shape.threads),
        items_(shape.items),
        width_(vector_variable(kernel.mapping).valid() ? kernel.mapping.vector_width : 1),
        groups_(plan::groups_of(kernel.region, row_, width_)),
        dead_rows_(has_dead_rows(kernel)) {}

  std::vector<Values> segments() const {
    std::vector<Values> found;
    for (size_t s = 0; s < kernel_.segments.size(); ++s) {
      const plan::Segment::Kind kind = kernel_.segments[s].kind;
      if (kind == plan::Segment::Kind::Epilogue) continue;
      const Body body = lower_segment(kernel_, s);
      std::vector<Values> per_row, row_loop;
      if (kind == plan::Segment::Kind::PerRow) per_row.push_back({{"steps", Steps{.slot = body.slot, .steps = body.steps}}});
      if (kind == plan::Segment::Kind::RowLoop) row_loop.push_back(row_loop_of(s, body));
      found.push_back({{"per_row", std::move(per_row)}, {"row_loop", std::move(row_loop)}});
    }
    return found;
  }

  std::vector<Values> persistent_values() const {
    const Slot fragment{.vector_var = vector_variable(kernel_.mapping), .width = width_};
    std::vector<Values> found;
    for (size_t i = 0; i < kernel_.region.body.size(); ++i) {
      const StmtId id(i);
      if (kernel_.memory_spaces[id] == plan::MemorySpace::Persistent && !plan::is_across(kernel_, id))
        found.push_back({{"type", type_of(kernel_, fragment, id)}, {"w", Local{'w', id}}});
    }
    return found;
  }

 private:
  const loops::Stmt& stmt(StmtId id) const { return kernel_.region.body[id]; }
  bool divide(int64_t divisor, Expr count) const { return sym::prove_divides(divisor, count, kernel_.assumptions); }

  Values row_loop_of(size_t segment, const Body& body) const {
    const std::vector<StmtId> reduces = reductions_of(kernel_, body.slot.stmts);
    const bool persistent = is_persistent(kernel_.mapping);
    std::vector<Values> divisors;
    for (StmtId id : shared_divisors(kernel_, segment)) divisors.push_back({{"d", Local{'d', id}}, {"v", Local{'v', id}}});
    return {{"reductions", reductions(reduces)},
            {"packed", packed_values(body.slot)},
            {"divisors", std::move(divisors)},
            {"persistent", persistent ? std::vector{persistent_items(kernel_.segments[segment], body)} : std::vector<Values>()},
            {"looped", persistent ? std::vector<Values>() : std::vector{looped_items(body, reduces)}},
            {"several_warps", when(threads_ > 32 && !reduces.empty())},
            {"in_warp", when(threads_ > 1 && threads_ <= 32)}};
  }

  std::vector<Values> reductions(const std::vector<StmtId>& reduces) const {
    std::vector<Values> found;
    for (StmtId id : reduces)
      found.push_back({{"state", StateType{id}},
                       {"r", Local{'r', id}},
                       {"h", Local{'h', id}},
                       {"v", Local{'v', id}},
                       {"type", stmt(id).dtype},
                       {"equal", shares_are_equal(id)},
                       {"origin", OriginComment{id}}});
    return found;
  }

  // Whether every thread of a row has equally many elements of the reduction, and its states make use of that.
  bool shares_are_equal(StmtId id) const {
    const loops::RowState state = row_state(stmt(id)).value();
    const bool whole_groups = !kernel_.mapping.vector_tail || width_ == 1;
    return !is_registered(state.reduction) && whole_groups && divide(threads_, groups_) &&
           std::ranges::all_of(row_, [&](VarId v) { return state.over.contains(v); });
  }

  // Narrow values of an earlier row loop, which stay narrow.
  std::vector<Values> packed_values(const Slot& slot) const {
    std::vector<Values> found;
    for (const Place& place : slot.in) {
      const bool own = std::ranges::find(slot.stmts, place.value) != slot.stmts.end();
      const bool narrow = has_lanes(kernel_, slot, place.value) && byte_size(stmt(place.value).dtype) < 4;
      if (place.where == Where::Persistent && narrow && !own) found.push_back({{"w", Local{'w', place.value}}});
    }
    return found;
  }

  // The position of a fragment in the row is declared beside the steps that need it.
  std::vector<Values> passes(const Body& body, std::string_view item) const {
    const bool needed = std::ranges::any_of(body.slot.stmts, [&](StmtId id) {
      const auto state = row_state(stmt(id));
      return state && form(state->reduction).takes_index();
    });
    std::vector<Values> found = passes_of(body, item);
    for (Values& pass : found)
      pass.add("positions", needed && &pass == &found.back() ? std::vector<Values>{{{"position", PointNumber{row_}}}} : std::vector<Values>());
    return found;
  }

  Values persistent_items(const plan::Segment& segment, const Body& body) const {
    const sym::Interval count = sym::bounds(groups_, kernel_.assumptions);
    const int64_t room = int64_t{items_} * threads_;
    CXXI_CHECK(room >= count.high, "{}: {} threads with {} items cannot hold {} groups", kernel_.name, threads_, items_, count.high);
    const bool counted = room != count.low;
    const int batch = segment.loads_ahead;
    return {{"in_turn", when(batch == 0 && items_ > 1)},
            {"batched", when(batch > 0)},
            {"batches", when(batch > 0 && batch < items_)},
            {"uneven", when(batch > 0 && batch < items_ && items_ % batch != 0)},
            {"batch", batch},
            {"ahead", groups_ahead(kernel_, body)},
            {"passes", passes(body, items_ == 1 ? "0" : "k")},
            {"lane", threads_ > 1 ? "cxxi_lane" : "cxxi_uint(0)"},
            {"several_items", when(items_ > 1)},
            {"guarded", when(dead_rows_ || counted)},
            {"both", when(dead_rows_ && counted)},
            {"counted", when(counted)},
            {"groups", count.low == count.high ? Value(Unsigned{count.low}) : Value("cxxi_groups")},
            {"coordinates", Coordinates{"cxxi_linear", row_, body.slot.width}},
            {"lanes", lanes_of(body.slot)}};
  }

  Values looped_items(const Body& body, const std::vector<StmtId>& reduces) const {
    const int unroll = kernel_.mapping.get<plan::Rows>().in_flight;
    std::vector<Values> in_blocks;
    for (StmtId id : summed_in_blocks(kernel_, reduces)) in_blocks.push_back({{"state", StateType{id}}, {"r", Local{'r', id}}, {"b", Local{'b', id}}});
    return {{"puts_aside", puts_aside(kernel_, !in_blocks.empty())},
            {"in_blocks", std::move(in_blocks)},
            {"groups", count_groups(kernel_, row_, width_)},
            {"lane", threads_ > 1 ? "cxxi_lane" : "0"},
            {"stride", threads_ * unroll},
            {"unrolled", when(unroll > 1)},
            {"unroll", unroll},
            {"counted", when(!divide(int64_t{threads_} * unroll, groups_))},
            {"ahead", groups_ahead(kernel_, body)},
            {"passes", passes(body, "")},
            {"coordinates", Coordinates{"cxxi_linear", row_, body.slot.width}},
            {"lanes", lanes_of(body.slot)}};
  }

  const plan::Kernel& kernel_;
  const std::vector<VarId>& row_;
  const int threads_, items_, width_;
  const Expr groups_;
  const bool dead_rows_;
};

}  // namespace

Values row_loops(const plan::Kernel& kernel, RowThreads shape) {
  const RowLoops loops(kernel, shape);
  return {{"threads", block_threads(kernel.mapping)},
          {"threads_per_row", shape.threads},
          {"items", shape.items},
          {"warps", block_threads(kernel.mapping) / 32},
          {"serial", when(serial_variable(kernel.mapping).valid())},
          {"dead_rows", when(has_dead_rows(kernel))},
          {"persistent_values", loops.persistent_values()},
          {"segments", loops.segments()}};
}

}  // namespace cxxinductor::kernels
