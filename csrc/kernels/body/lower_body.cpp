#include "kernels/body/lower_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/loops/stmt_properties.h"
#include "ir/plan/forms.h"
#include "ir/plan/serial_rows.h"
#include "ir/plan/spelling.h"
#include "kernels/body/guards.h"
#include "kernels/body/slots.h"

namespace cxxinductor::kernels {
namespace {

using plan::Kernel;
using Kind = Step::Kind;

class Lowering {
 public:
  Lowering(const Kernel& kernel, Slot slot) : kernel_(kernel), slot_(std::move(slot)) {}

  Body run() && {
    std::vector<Step> ahead = lower_loads(kernel_, slot_, slot_.ahead);
    slot_.lanes == LaneForm::Loop ? lower_loop() : lower_vector();
    return {std::move(slot_), std::move(ahead), std::move(steps_)};
  }

 private:
  // All lanes at once.
  void lower_vector() {
    bring([](StmtId) { return true; });
    for (StmtId id : slot_.stmts) lower_statement(id);
  }

  // What a fragment has once, its lanes in loops, then whole groups and reductions.
  void lower_loop() {
    const std::vector<StmtId> shared = shared_states();
    for (StmtId id : shared) add({.kind = Kind::LoadStates, .stmt = id, .where = Where::SharedStates});
    bring([&](StmtId id) { return !lanes(id); });
    for (StmtId id : slot_.stmts) {
      if (is_wide(id)) {
        if (load(id) && !is_there(id)) add({.kind = Kind::LoadGroup, .stmt = id, .where = group_place(id), .guard = guard_of(kernel_, slot_, id)});
      } else if (!lanes(id) && !reduce(id)) {
        lower_statement(id);
      }
    }
    if (std::ranges::any_of(slot_.stmts, [&](StmtId id) { return lanes(id) || (reduce(id) && reduces_lanes(kernel_, slot_, *reduce(id))); }) ||
        std::ranges::any_of(slot_.out, [](const Place& place) { return place.where == Where::Lanes; }))
      lower_lanes();
    for (StmtId id : slot_.stmts) {
      if (reduce(id) && !by_lane(id)) lower_update(id);
      if (is_wide(id) && stmt(id).as<loops::Store>()) add({.kind = Kind::StoreGroup, .stmt = id, .guard = guard_of(kernel_, slot_, id)});
    }
    for (StmtId id : shared)
      if (listed(id)) add({.kind = Kind::StoreStates, .stmt = id, .where = Where::SharedStates});
  }

  // A division by the row's value is done for all lanes at once, between the loop that ends with its dividends and the loop that begins
  // with its quotients.
  void lower_lanes() {
    for (StmtId id : slot_.stmts) {
      if (is_wide(id) && stmt(id).as<loops::Store>()) add({.kind = Kind::Reserve, .stmt = id, .where = Where::Group});
      if (collects(id)) add({.kind = Kind::Reserve, .stmt = id, .where = Where::Lanes});
      if (form_of(id) == Form::FourWide) add({.kind = Kind::Reserve, .stmt = id, .form = Form::FourWide});
    }
    std::vector<StmtId> stretch, known;
    for (size_t i = 0; i < slot_.stmts.size(); ++i) {
      const StmtId id = slot_.stmts[i];
      const bool divides = lanes(id) && form_of(id) == Form::SharedDivisor, last = i + 1 == slot_.stmts.size();
      if (!divides) stretch.push_back(id);
      if (!divides && !last) continue;
      std::vector<StmtId> wanted;
      std::ranges::copy_if(stretch, std::back_inserter(wanted), [&](StmtId value) { return last ? leaves_in_lanes(value) : is_lane_value(value); });
      lower_lane_loop(stretch, known, wanted, divides ? id : StmtId());
      stretch.clear();
      known.insert(known.end(), wanted.begin(), wanted.end());
      if (!divides) continue;
      add({.kind = Kind::Divide, .stmt = id, .where = Where::Lanes, .form = Form::SharedDivisor});
      if (find_place(slot_.out, id)) {
        add({.kind = Kind::BeginLanes});
        add({.kind = Kind::Bring, .stmt = id, .where = Where::Lanes});
        keep(id);
        add({.kind = Kind::EndLanes});
      }
      known.push_back(id);
    }
  }

  // Values of earlier loops come from arrays; those that later ones may want go to arrays, and so do the dividends of the division that
  // ends the stretch.
  void lower_lane_loop(const std::vector<StmtId>& stretch, const std::vector<StmtId>& known, const std::vector<StmtId>& wanted, StmtId division) {
    for (StmtId id : wanted) add({.kind = Kind::Reserve, .stmt = id, .where = Where::Lanes});
    if (division.valid()) add({.kind = Kind::Reserve, .stmt = division, .where = Where::Lanes});
    add({.kind = Kind::BeginLanes});
    bring([&](StmtId id) { return lanes(id); });
    for (StmtId id : known) add({.kind = Kind::Bring, .stmt = id, .where = Where::Lanes});
    for (StmtId id : stretch) {
      if (!reduce(id)) {
        if (lanes(id)) lower_statement(id);
      } else if (by_lane(id)) {
        lower_update(id);
      } else if (collects(id)) {
        add({.kind = Kind::Fill, .stmt = id, .where = Where::Lanes});
      }
    }
    for (StmtId id : wanted) add({.kind = Kind::Keep, .stmt = id, .where = Where::Lanes});
    if (division.valid()) add({.kind = Kind::Fill, .stmt = division, .where = Where::Lanes});
    add({.kind = Kind::EndLanes});
  }

  void lower_statement(StmtId id) {
    if (const Place* there = find_place(slot_.in, id); there && there->where == Where::Value) return;
    const loops::Stmt& s = stmt(id);
    if (s.as<loops::Store>()) {
      if (slot_.lanes == LaneForm::Loop && is_wide(id)) return add({.kind = Kind::Fill, .stmt = id, .where = Where::Group});
      return add({.kind = Kind::Store, .stmt = id, .guard = guard_of(kernel_, slot_, id)});
    }
    if (s.as<loops::Check>()) return add({.kind = Kind::Check, .stmt = id, .guard = guard_of(kernel_, slot_, id)});
    if (s.as<loops::Reduce>()) return lower_update(id);
    if (s.as<loops::Load>()) {
      const Where from = source_of(id);
      add({.kind = Kind::Load, .stmt = id, .where = from, .guard = from == Where::Memory ? guard_of(kernel_, slot_, id) : Guard()});
      if (from != Where::Persistent) keep(id);
      return;
    }
    add({.kind = Kind::Compute, .stmt = id, .form = form_of(id)});
    keep(id);
  }

  void lower_update(StmtId id) {
    const auto& update = *reduce(id);
    Where where = Where::State;
    if (kernel_.memory_spaces[id] == plan::MemorySpace::Shared) {
      where = Where::SharedStates;
    } else if (plan::is_across(kernel_, id)) {
      where = Where::States;
    } else if (is_columns(kernel_.mapping)) {
      where = Where::Accumulators;
    }
    const bool collected = collects(id) && reduces_lanes(kernel_, slot_, update);
    add({.kind = collected ? Kind::UpdateGroup : Kind::Update, .stmt = id, .where = where, .guard = guard_of(kernel_, slot_, id)});
  }

  // Values of earlier segments, under their names.
  template <class Wanted>
  void bring(Wanted wanted) {
    for (const Place& place : slot_.in)
      if (place.where != Where::Value && !listed(place.value) && wanted(place.value)) add({.kind = Kind::Bring, .stmt = place.value, .where = place.where});
  }

  // What later segments read is put where they look for it.
  void keep(StmtId id) {
    const Place* place = find_place(slot_.out, id);
    if (place && place->where != Where::Lanes) add({.kind = Kind::Keep, .stmt = id, .where = place->where});
  }

  Where group_place(StmtId id) const { return find_place(slot_.out, id) && persistent(id) ? Where::Persistent : Where::Group; }

  Where source_of(StmtId id) const {
    if (kernel_.access[id] == plan::AccessKind::Staged) return Where::Tile;
    if (const Place* there = find_place(slot_.in, id)) return there->where;
    if (const Place* ahead = find_place(slot_.ahead, id)) return ahead->where;
    return slot_.lanes == LaneForm::Loop && is_wide(id) ? group_place(id) : Where::Memory;
  }

  Form form_of(StmtId id) const {
    if (slot_.lanes == LaneForm::Vector) return Form::Plain;
    if (plan::shares_divisor(kernel_, id)) return Form::SharedDivisor;
    if (plan::philox_vec4(kernel_, id, slot_.vector_var, slot_.width)) return Form::FourWide;
    return rounds(id) ? Form::Rounded : Form::Plain;
  }

  // A cast to f32 of a value that the same body narrows from f32?
  bool rounds(StmtId id) const {
    const auto* widen = stmt(id).as<loops::Apply>();
    if (!widen || widen->op != ScalarOp::Cast || stmt(id).dtype != DType::F32 || !listed(widen->operands[0])) return false;
    const loops::Stmt& narrow = stmt(widen->operands[0]);
    const auto* cast = narrow.as<loops::Apply>();
    if (!cast || cast->op != ScalarOp::Cast || (narrow.dtype != DType::BF16 && narrow.dtype != DType::F16)) return false;
    return stmt(cast->operands[0]).dtype == DType::F32;
  }

  std::vector<StmtId> shared_states() const {
    std::set<StmtId> found;
    const auto add_shared = [&](StmtId id) {
      if (kernel_.memory_spaces[id] == plan::MemorySpace::Shared) found.insert(id);
    };
    for (StmtId id : slot_.stmts) {
      add_shared(id);
      for (StmtId operand : loops::operands(stmt(id))) add_shared(operand);
    }
    return {found.begin(), found.end()};
  }

  // Is it a reduction whose states are updated lane by lane?
  bool by_lane(StmtId id) const { return (is_columns(kernel_.mapping) || plan::is_across(kernel_, id)) && lanes(reduce(id)->operand); }
  // One that takes the operands of all lanes at once?
  bool collects(StmtId id) const {
    return reduce(id) && !is_columns(kernel_.mapping) && !plan::is_across(kernel_, id) && slot_.lanes == LaneForm::Loop &&
           reduces_lanes(kernel_, slot_, *reduce(id));
  }
  bool is_lane_value(StmtId id) const {
    const loops::Stmt& s = stmt(id);
    return lanes(id) && !is_effect(s) && !is_known_after_row(s);
  }
  bool leaves_in_lanes(StmtId id) const {
    const Place* place = find_place(slot_.out, id);
    return place && place->where == Where::Lanes;
  }
  bool is_there(StmtId id) const { return find_place(slot_.in, id) || find_place(slot_.ahead, id); }
  bool listed(StmtId id) const { return std::ranges::find(slot_.stmts, id) != slot_.stmts.end(); }
  bool persistent(StmtId id) const { return kernel_.memory_spaces[id] == plan::MemorySpace::Persistent; }
  bool lanes(StmtId id) const { return has_lanes(kernel_, slot_, id); }
  bool is_wide(StmtId id) const { return kernels::is_wide(kernel_, slot_, id); }
  const loops::Stmt& stmt(StmtId id) const { return kernel_.region.body[id]; }
  const loops::Reduce* reduce(StmtId id) const { return stmt(id).as<loops::Reduce>(); }
  const loops::Load* load(StmtId id) const { return stmt(id).as<loops::Load>(); }
  void add(Step step) { steps_.push_back(std::move(step)); }

  const Kernel& kernel_;
  Slot slot_;
  std::vector<Step> steps_;
};

}  // namespace

Body lower_body(const Kernel& kernel, Slot slot) { return Lowering(kernel, std::move(slot)).run(); }

Body lower_segment(const Kernel& kernel, size_t segment) { return lower_body(kernel, segment_slot(kernel, segment)); }

std::vector<Step> lower_loads(const Kernel& kernel, const Slot& slot, const std::vector<Place>& loads) {
  std::vector<Step> steps;
  for (const Place& place : loads)
    steps.push_back({.kind = Kind::LoadGroup, .stmt = place.value, .where = place.where, .guard = guard_of(kernel, slot, place.value)});
  return steps;
}

std::vector<StmtId> shared_divisors(const Kernel& kernel, size_t segment) {
  std::vector<StmtId> found;
  const auto divisors_of = [&](size_t s, auto visit) {
    if (kernel.segments[s].kind != plan::Segment::Kind::RowLoop) return;
    for (StmtId id : kernel.segments[s].stmts)
      if (plan::shares_divisor(kernel, id)) visit(kernel.region.body[id].as<loops::Apply>()->operands[1]);
  };
  std::set<StmtId> seen;
  for (size_t s = 0; s < segment; ++s) divisors_of(s, [&](StmtId id) { seen.insert(id); });
  divisors_of(segment, [&](StmtId id) {
    if (seen.insert(id).second) found.push_back(id);
  });
  return found;
}

}  // namespace cxxinductor::kernels
