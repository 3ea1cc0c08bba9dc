// Invariants of bodies.
//
//  B1  Lane loops begin and end in turn, only where lanes are a loop. What has a value per lane is made, brought, kept, filled, stored and
//      checked inside of one, everything else outside.
//  B2  What a step reads is there: values in scope (those of a lane until its loop ends), masks, indices and bounds included; groups, tiles
//      and arrays that the slot or an earlier step provides.
//  B3  Each statement of the slot is executed once; those that the slot gives as values are not. Nothing else is executed.
//  B4  Accesses, checks and updates have the guards that follow from the slot and the statement. Other steps have none.
//  B5  What lanes fill was reserved before and is used after; whole groups and all operands are moved outside of lane loops.
//  B6  The loads ahead are those of the slot, to their places, and need nothing that the body computes. Values of `out` are kept.
//  B7  States in shared memory are brought before and put back after what updates them.
#include "kernels/body/verify_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/text_parts.h"
#include "kernels/body/guards.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/print_body.h"

namespace cxxinductor::kernels {
namespace {

using plan::Kernel;
using Kind = Step::Kind;

bool executes(Kind kind) {
  switch (kind) {
    case Kind::Load:
    case Kind::Compute:
    case Kind::Divide:
    case Kind::StoreGroup:
    case Kind::Store:
    case Kind::Check:
    case Kind::Update:
    case Kind::UpdateGroup:
      return true;
    case Kind::LoadStates:
    case Kind::StoreStates:
    case Kind::Bring:
    case Kind::LoadGroup:
    case Kind::Keep:
    case Kind::Reserve:
    case Kind::BeginLanes:
    case Kind::EndLanes:
    case Kind::Fill:
      return false;
  }
  return false;
}

class Verifier {
 public:
  Verifier(const Kernel& kernel, const Body& body) : kernel_(kernel), body_(body), slot_(body.slot) {}

  std::vector<std::string> run() && {
    check_ahead();
    for (const Place& place : slot_.in) {
      if (place.where == Where::Value) values_.insert(place.value);
      provide(place.value, place.where);
    }
    for (const Place& place : slot_.ahead) provide(place.value, place.where);
    for (const Step& step : body_.steps) check(step);
    if (in_lanes_) report("B1", "a lane loop does not end");
    check_executed();
    check_kept();
    for (StmtId id : filled_)
      if (!used_.contains(id)) report("B5", "%{} is filled and not used", id.index());
    for (StmtId id : states_)
      if (updated_.contains(id)) report("B7", "the states of %{} are not put back", id.index());
    return std::move(problems_);
  }

 private:
  template <class... Args>
  void report(std::string_view invariant, fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back(fmt::format("{}: {}: {}", invariant, kernel_.name, fmt::format(format, std::forward<Args>(args)...)));
  }

  const loops::Stmt& stmt(StmtId id) const { return kernel_.region.body[id]; }
  bool lanes(StmtId id) const { return slot_.lanes == LaneForm::Loop && has_lanes(kernel_, slot_, id); }
  bool listed(StmtId id) const { return std::ranges::find(slot_.stmts, id) != slot_.stmts.end(); }
  void provide(StmtId id, Where where) { places_.insert({id, where}); }
  bool provided(StmtId id, Where where) const { return places_.contains({id, where}); }

  void define(StmtId id) { (in_lanes_ ? lane_values_ : values_).insert(id); }
  void need(StmtId by, StmtId value) {
    if (!values_.contains(value) && !lane_values_.contains(value)) report("B2", "%{} reads %{}, which is not there", by.index(), value.index());
  }
  void need(StmtId by, sym::Expr e) {
    for (sym::Expr symbol : e.free_symbols())
      if (const StmtId id = loops::statement_of_symbol(symbol.name()); id.valid()) need(by, id);
  }
  void need(const Step& step, Where where) {
    if (!provided(step.stmt, where)) report("B2", "{} %{}: nothing is there as {}", name_of(step.kind), step.stmt.index(), name_of(where));
  }
  // Memory is touched at an address, under the guard.
  void need_access(const Step& step) {
    need(step.stmt, kernel_.offsets[step.stmt]);
    if (step.guard.mask.valid()) need(step.stmt, step.guard.mask);
    for (StmtId id : step.guard.in_range) {
      const auto* check = stmt(id).as<loops::Check>();
      if (!check) return report("B4", "%{} relies on %{}, which is not a check", step.stmt.index(), id.index());
      need(step.stmt, check->index);
      need(step.stmt, check->bound);
    }
  }

  void check_ahead();
  void check(const Step& step);
  void check_scope(const Step& step);
  void check_guard(const Step& step);
  void check_update(const Step& step);
  void check_compute(const Step& step);
  void check_filled(const Step& step);
  void check_executed();
  void check_kept();

  const Kernel& kernel_;
  const Body& body_;
  const Slot& slot_;
  bool in_lanes_ = false;
  std::set<StmtId> values_, lane_values_, reserved_, filled_, used_, states_, updated_;
  std::set<std::pair<StmtId, Where>> places_;
  std::map<StmtId, int> executed_;
  std::vector<std::string> problems_;
};

void Verifier::check_ahead() {
  if (body_.ahead.size() != slot_.ahead.size()) report("B6", "{} loads ahead, the slot has {}", body_.ahead.size(), slot_.ahead.size());
  for (const Step& step : body_.ahead) {
    const Place* place = find_place(slot_.ahead, step.stmt);
    if (step.kind != Kind::LoadGroup || !place || place->where != step.where) report("B6", "%{} is not a load ahead of the slot", step.stmt.index());
    if (step.guard.mask.valid() || loops::depends_on_data(kernel_.offsets[step.stmt])) report("B6", "the load %{} waits for data", step.stmt.index());
    check_guard(step);
  }
}

void Verifier::check_scope(const Step& step) {
  const bool whole = step.kind == Kind::LoadGroup || step.kind == Kind::StoreGroup || step.kind == Kind::UpdateGroup || step.kind == Kind::Divide ||
                     step.kind == Kind::Reserve || step.kind == Kind::LoadStates || step.kind == Kind::StoreStates;
  if (whole && in_lanes_) return report("B5", "{} %{} stands in a lane loop", name_of(step.kind), step.stmt.index());
  if (whole) return;
  const auto* reduce = stmt(step.stmt).as<loops::Reduce>();
  bool per_lane = lanes(step.stmt);
  if (reduce && step.kind == Kind::Update) per_lane = lanes(reduce->operand);
  if (step.kind == Kind::Fill) per_lane = true;
  if (per_lane != in_lanes_) report("B1", "{} %{} stands {} a lane loop", name_of(step.kind), step.stmt.index(), in_lanes_ ? "in" : "outside of");
}

void Verifier::check_guard(const Step& step) {
  const bool guarded = step.kind == Kind::LoadGroup || (step.kind == Kind::Load && step.where == Where::Memory) || step.kind == Kind::StoreGroup ||
                       step.kind == Kind::Store || step.kind == Kind::Check || step.kind == Kind::Update || step.kind == Kind::UpdateGroup;
  const Guard wanted = guarded ? guard_of(kernel_, slot_, step.stmt) : Guard();
  const auto compare = [&](bool equal, std::string_view condition) {
    if (!equal) report("B4", "{} %{} has another condition than it needs: {}", name_of(step.kind), step.stmt.index(), condition);
  };
  compare(step.guard.effects == wanted.effects, "effects");
  compare(step.guard.once == wanted.once, "once");
  compare(step.guard.lanes == wanted.lanes, "lanes");
  compare(step.guard.mask == wanted.mask, "mask");
  compare(step.guard.in_range == wanted.in_range, "range");
}

void Verifier::check_compute(const Step& step) {
  const auto* apply = stmt(step.stmt).as<loops::Apply>();
  if (const auto* project = stmt(step.stmt).as<loops::Project>()) {
    if (listed(project->of)) report("B2", "%{} reads %{} before its row loop ends", step.stmt.index(), project->of.index());
  } else if (step.form == Form::Rounded && apply) {
    const auto* narrow = stmt(apply->operands[0]).as<loops::Apply>();
    if (!narrow) return report("B2", "%{} rounds %{}, which is not a cast", step.stmt.index(), apply->operands[0].index());
    need(step.stmt, narrow->operands[0]);
  } else {
    for (StmtId operand : loops::operands(stmt(step.stmt))) need(step.stmt, operand);
  }
  if (step.form == Form::FourWide && !reserved_.contains(step.stmt)) report("B5", "%{} has no room for its words", step.stmt.index());
  define(step.stmt);
}

void Verifier::check_filled(const Step& step) {
  if (!filled_.contains(step.stmt)) report("B5", "{} %{}: no lane filled it", name_of(step.kind), step.stmt.index());
  used_.insert(step.stmt);
}

void Verifier::check_update(const Step& step) {
  const auto& reduce = *stmt(step.stmt).as<loops::Reduce>();
  step.kind == Kind::UpdateGroup ? check_filled(step) : need(step.stmt, reduce.operand);
  if (step.where == Where::SharedStates && !states_.contains(step.stmt)) report("B7", "the states of %{} are not brought", step.stmt.index());
  updated_.insert(step.stmt);
}

void Verifier::check(const Step& step) {
  if (step.kind == Kind::BeginLanes || step.kind == Kind::EndLanes) {
    if (in_lanes_ == (step.kind == Kind::BeginLanes) || slot_.lanes == LaneForm::Vector) report("B1", "{} out of turn", name_of(step.kind));
    in_lanes_ = step.kind == Kind::BeginLanes;
    return lane_values_.clear();
  }
  if (slot_.lanes == LaneForm::Loop) check_scope(step);
  check_guard(step);
  if (executes(step.kind)) ++executed_[step.stmt];
  const loops::Stmt& s = stmt(step.stmt);
  switch (step.kind) {
    case Kind::BeginLanes:
    case Kind::EndLanes:
      break;
    case Kind::LoadStates:
      states_.insert(step.stmt);
      break;
    case Kind::StoreStates:
      if (!states_.erase(step.stmt)) report("B7", "the states of %{} are not brought", step.stmt.index());
      break;
    case Kind::Bring:
      if (step.where == Where::SharedStates && !states_.contains(step.stmt)) report("B7", "the states of %{} are not brought", step.stmt.index());
      need(step, step.where);
      define(step.stmt);
      break;
    case Kind::LoadGroup:
      need_access(step);
      provide(step.stmt, step.where);
      break;
    case Kind::Load:
      if (step.where == Where::Memory) need_access(step);
      if (step.where == Where::Tile && kernel_.access[step.stmt] != plan::AccessKind::Staged) report("B2", "%{} is not staged", step.stmt.index());
      if (step.where != Where::Memory && step.where != Where::Tile) need(step, step.where);
      define(step.stmt);
      break;
    case Kind::Compute:
      check_compute(step);
      break;
    case Kind::Keep:
      need(step.stmt, step.stmt);
      if (step.where == Where::Lanes && !reserved_.contains(step.stmt)) report("B5", "keep %{}: no room was reserved", step.stmt.index());
      provide(step.stmt, step.where);
      break;
    case Kind::Reserve:
      reserved_.insert(step.stmt);
      break;
    case Kind::Fill: {
      const auto* store = s.as<loops::Store>();
      const auto* reduce = s.as<loops::Reduce>();
      need(step.stmt, store ? store->value : reduce ? reduce->operand : loops::operands(s).at(0));
      if (!reserved_.contains(step.stmt)) report("B5", "fill %{}: no room was reserved", step.stmt.index());
      filled_.insert(step.stmt);
      break;
    }
    case Kind::Divide:
      check_filled(step);
      need(step.stmt, s.as<loops::Apply>()->operands[1]);
      provide(step.stmt, Where::Lanes);
      break;
    case Kind::StoreGroup:
      need_access(step);
      check_filled(step);
      break;
    case Kind::Store:
      need_access(step);
      need(step.stmt, s.as<loops::Store>()->value);
      break;
    case Kind::Check:
      need(step.stmt, s.as<loops::Check>()->index);
      need(step.stmt, s.as<loops::Check>()->bound);
      break;
    case Kind::Update:
    case Kind::UpdateGroup:
      check_update(step);
      break;
  }
}

void Verifier::check_executed() {
  for (StmtId id : slot_.stmts) {
    const Place* there = find_place(slot_.in, id);
    const int wanted = there && there->where == Where::Value ? 0 : 1;
    const int found = executed_.contains(id) ? executed_[id] : 0;
    if (found != wanted) report("B3", "%{} is executed {} times", id.index(), found);
  }
  for (const auto& [id, count] : executed_)
    if (!listed(id)) report("B3", "%{} is executed and does not belong to the body", id.index());
}

void Verifier::check_kept() {
  for (const Place& place : slot_.out)
    if (!provided(place.value, place.where)) report("B6", "%{} is not kept as {}", place.value.index(), name_of(place.where));
}

}  // namespace

std::vector<std::string> verify_body(const Kernel& kernel, const Body& body) { return Verifier(kernel, body).run(); }

}  // namespace cxxinductor::kernels
