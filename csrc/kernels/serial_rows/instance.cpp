// What stands in the template of serial rows.
#include "ir/plan/early_loads.h"
#include "ir/plan/serial_rows.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/slots.h"
#include "kernels/row_loops.h"
#include "kernels/serial_rows/serial_rows.h"
#include "support/error.h"
#include "sym/integer.h"

namespace cxxinductor::kernels {
namespace {

class SerialRowsInstance {
 public:
  explicit SerialRowsInstance(const plan::Kernel& kernel)
      : kernel_(kernel),
        shape_(kernel.mapping.get<plan::SerialRows>()),
        length_(sym::simplify(kernel.region.vars[shape_.serial].extent, kernel.assumptions)),
        groups_(plan::groups_of_row(kernel)) {
    CXXI_CHECK(length_.is_constant(), "{}: a block executes {} rows", kernel_.name, sym::to_string(length_));
    fragment_.vector_var = vector_variable(kernel.mapping);
    fragment_.width = fragment_.vector_var.valid() ? kernel.mapping.vector_width : 1;
    fragment_.masked_tail = kernel.mapping.vector_tail && fragment_.width > 1;
  }

  Instance make() const {
    const bool dead_rows = has_dead_rows(kernel_), loads_next_row = !ahead_.empty() || !of_row_.empty();
    Values values = row_loops(kernel_, {shape_.threads_per_row, shape_.items_per_thread});
    values.merge(Values{{"block", BlockNumber()},
                        {"uniform_loads", loads_made_once(kernel_)},
                        {"part", Coordinates{"cxxi_part", kernel_.mapping.space}},
                        {"width", fragment_.width},
                        {"rows_per_block", shape_.rows_per_block},
                        {"x", shape_.serial},
                        {"length", length_.constant()},
                        {"steps_of_block", sym::ceil_quotient(length_.constant(), shape_.rows_per_block)},
                        {"groups", Unsigned{groups_}},
                        {"uneven_items", when(groups_ != int64_t{shape_.items_per_thread} * shape_.threads_per_row)},
                        {"coordinates", Coordinates{"cxxi_linear", kernel_.mapping.row, fragment_.width}},
                        {"lanes", lanes_of(fragment_)},
                        {"sums", sums()},
                        {"shared_sums", shared_sums()},
                        {"loads_once", item_loads(once_, Where::Persistent)},
                        {"packed_once", packed_once()},
                        {"next_items", next_items()},
                        {"next_values", next_values()},
                        {"row_loads", loads(of_row_, Where::Next)},
                        {"item_loads", item_loads(ahead_, Where::Next)},
                        {"first_row", loads_next_row ? row_loads("0", dead_rows) : std::vector<Values>()},
                        {"next_row", loads_next_row ? row_loads("cxxi_step + 1", true) : std::vector<Values>()},
                        {"epilogues", epilogues()}});
    return {"serial_rows_kernel", std::move(values)};
  }

 private:
  const loops::Stmt& stmt(StmtId id) const { return kernel_.region.body[id]; }
  template <class Wanted>
  std::vector<StmtId> statements(Wanted wanted) const {
    std::vector<StmtId> found;
    for (size_t i = 0; i < kernel_.region.body.size(); ++i)
      if (wanted(StmtId(i))) found.emplace_back(i);
    return found;
  }
  bool is_shared(StmtId id) const { return kernel_.memory_spaces[id] == plan::MemorySpace::Shared; }
  Values state_of(StmtId id) const { return {{"state", StateType{id}}, {"r", Local{'r', id}}}; }

  std::vector<Values> sums() const {
    std::vector<Values> found;
    for (StmtId id : statements([&](StmtId s) { return plan::is_across(kernel_, s) && !is_shared(s); })) found.push_back(state_of(id));
    return found;
  }

  std::vector<Values> shared_sums() const {
    std::vector<Values> states;
    int64_t offset = 0;
    for (StmtId id : statements([&](StmtId s) { return is_shared(s); })) {
      Values& state = states.emplace_back(state_of(id));
      state.merge(Values{{"s", Local{'s', id}}, {"all_groups", groups_}, {"offset", offset}});
      offset += plan::shared_states_bytes(groups_, kernel_.mapping.vector_width, plan::state_dtype(kernel_.region, *stmt(id).as<loops::Reduce>()));
    }
    if (states.empty()) return {};
    CXXI_CHECK(shape_.rows_per_block == 1, "{}: {} rows at a time share sums", kernel_.name, shape_.rows_per_block);
    return {{{"states", std::move(states)}}};
  }

  Steps loads(const std::vector<StmtId>& ids, Where where) const {
    std::vector<Place> places;
    for (StmtId id : ids) places.push_back({id, where});
    return {.slot = fragment_, .steps = lower_loads(kernel_, fragment_, places), .are_ahead = true};
  }
  // Into arrays over the thread's items.
  std::vector<Values> item_loads(const std::vector<StmtId>& ids, Where where) const {
    if (ids.empty()) return {};
    return {{{"steps", loads(ids, where)}}};
  }
  std::vector<Values> row_loads(std::string step, bool may_be_past) const { return {{{"step", std::move(step)}, {"may_be_past", when(may_be_past)}}}; }

  std::vector<Values> packed_once() const {
    std::vector<Values> found;
    for (StmtId id : once_)
      if (has_lanes(kernel_, fragment_, id) && byte_size(stmt(id).dtype) < 4) found.push_back({{"w", Local{'w', id}}});
    return found;
  }
  std::vector<Values> next_items() const {
    std::vector<Values> found;
    for (StmtId id : ahead_) found.push_back({{"type", type_of(kernel_, fragment_, id)}, {"n", Local{'n', id}}, {"w", Local{'w', id}}});
    return found;
  }
  std::vector<Values> next_values() const {
    std::vector<Values> found;
    for (StmtId id : of_row_) found.push_back({{"type", stmt(id).dtype}, {"n", Local{'n', id}}, {"v", Local{'v', id}}});
    return found;
  }

  std::vector<Values> joined_rows() const {
    if (shape_.rows_per_block == 1) return {};
    const plan::JoinedRows joined = plan::joined_rows(kernel_);
    std::vector<Values> states;
    for (StmtId id : statements([&](StmtId s) { return plan::is_across(kernel_, s); })) states.push_back({{"r", Local{'r', id}}});
    return {{{"shared", "cxxi_shared"}, {"chunks", (joined.bytes + 15) / 16}, {"room", joined.rows}, {"joined", std::move(states)}}};
  }
  std::vector<Values> epilogues() const {
    std::vector<Values> found;
    for (size_t s = 0; s < kernel_.segments.size(); ++s) {
      if (kernel_.segments[s].kind != plan::Segment::Kind::Epilogue) continue;
      const Body body = lower_segment(kernel_, s);
      found.push_back({{"several_rows", joined_rows()}, {"lanes", lanes_of(body.slot)}, {"steps", Steps{.slot = body.slot, .steps = body.steps}}});
    }
    return found;
  }

  const plan::Kernel& kernel_;
  const plan::SerialRows& shape_;
  const sym::Expr length_;
  const int64_t groups_;
  Slot fragment_;
  const std::vector<StmtId> once_ = plan::persistent_loads_of_block(kernel_), ahead_ = plan::persistent_loads_of_row(kernel_),
                            of_row_ = plan::row_loads_ahead(kernel_);
};

}  // namespace

Instance instantiate_serial_rows(const plan::Kernel& kernel, plan::Variant) { return SerialRowsInstance(kernel).make(); }

}  // namespace cxxinductor::kernels
