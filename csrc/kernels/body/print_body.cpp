#include "kernels/body/print_body.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/loops/region_text.h"
#include "support/overloaded.h"
#include "support/text_writer.h"

namespace cxxinductor::kernels {
namespace {

using plan::Kernel;

std::string ref(StmtId id) { return fmt::format("%{}", id.index()); }

std::string list(const std::vector<StmtId>& ids) {
  std::vector<std::string> names;
  for (StmtId id : ids) names.push_back(ref(id));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string list(const std::vector<Place>& places) {
  std::vector<std::string> names;
  for (const Place& place : places) names.push_back(fmt::format("{} {}", ref(place.value), name_of(place.where)));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string list(const Kernel& kernel, loops::VarSet vars) {
  std::vector<std::string_view> names;
  for (size_t v = 0; v < kernel.region.vars.size(); ++v)
    if (vars.contains(VarId(v))) names.push_back(kernel.region.vars[VarId(v)].name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string_view name_of(Form form) {
  switch (form) {
    case Form::Plain:
      return "";
    case Form::SharedDivisor:
      return " by shared divisor";
    case Form::Rounded:
      return " rounded";
    case Form::FourWide:
      return " four wide";
  }
  return "?";
}

std::string conditions(const Kernel& kernel, const Guard& guard) {
  std::vector<std::string> all;
  if (guard.effects) all.emplace_back("effects");
  for (VarId v : guard.once) all.push_back(fmt::format("{} is 0", kernel.region.vars[v].name));
  if (guard.lanes) all.emplace_back("lane exists");
  if (guard.mask.valid()) all.push_back(ref(guard.mask));
  for (StmtId check : guard.in_range) all.push_back(fmt::format("{} holds", ref(check)));
  return all.empty() ? "" : fmt::format(" if {}", fmt::join(all, ", "));
}

void print_slot(TextWriter& out, const Kernel& kernel, const Slot& slot) {
  const std::string along = slot.vector_var.valid() ? " along " + kernel.region.vars[slot.vector_var].name : "";
  out.line("fragment {}{}{}, lanes in a {}, running [{}]", slot.width, along, slot.masked_tail ? " masked tail" : "",
           slot.lanes == LaneForm::Loop ? "loop" : "vector", list(kernel, slot.running));
  if (slot.effects != Effects())
    out.line("effects{}{}", slot.effects.first_thread ? " of the row's first thread" : "", slot.effects.live_row ? " in live rows" : "");
  if (slot.checks_return) out.line("failed checks return");
  if (!slot.in.empty()) out.line("in {}", list(slot.in));
  if (!slot.ahead.empty()) out.line("ahead {}", list(slot.ahead));
  if (!slot.out.empty()) out.line("out {}", list(slot.out));
  if (!slot.uniform.stmts.empty()) out.line("uniform {}", list(std::vector<StmtId>(slot.uniform.stmts.begin(), slot.uniform.stmts.end())));
}

// What a step is about: the statement, where the step is the one that executes it.
std::string subject(const Kernel& kernel, const Step& step) {
  switch (step.kind) {
    case Step::Kind::BeginLanes:
    case Step::Kind::EndLanes:
      return "";
    case Step::Kind::Bring:
    case Step::Kind::Keep:
    case Step::Kind::Reserve:
    case Step::Kind::Fill:
    case Step::Kind::LoadStates:
    case Step::Kind::StoreStates:
      return " " + ref(step.stmt);
    case Step::Kind::LoadGroup:
    case Step::Kind::Load:
    case Step::Kind::Compute:
    case Step::Kind::Divide:
    case Step::Kind::StoreGroup:
    case Step::Kind::Store:
    case Step::Kind::Check:
    case Step::Kind::Update:
    case Step::Kind::UpdateGroup:
      return " " + statement_text(kernel, step.stmt);
  }
  return "?";
}

void print_step(TextWriter& out, const Kernel& kernel, const Step& step) {
  if (step.kind == Step::Kind::EndLanes) out.dedent();
  const std::string where = step.where == Where::Value ? "" : fmt::format(" [{}]", name_of(step.where));
  out.line("{}{}{}{}{}", name_of(step.kind), subject(kernel, step), where, name_of(step.form), conditions(kernel, step.guard));
  if (step.kind == Step::Kind::BeginLanes) out.indent();
}

}  // namespace

std::string statement_text(const Kernel& kernel, StmtId id) {
  const loops::Stmt& stmt = kernel.region.body[id];
  const auto offset = [&] { return loops::print_expr(kernel.offsets[id]); };
  return std::visit(
      Overloaded{[&](const loops::Load& load) { return fmt::format("{} = @{}[{}]", ref(id), load.buffer.index(), offset()); },
                 [&](const loops::Constant& constant) { return fmt::format("{} = {}", ref(id), to_string(constant.value)); },
                 [&](const loops::Index& index) { return fmt::format("{} = index({})", ref(id), loops::print_expr(index.value)); },
                 [&](const loops::Apply& apply) {
                   const std::string type = info(apply.op).rule == TypeRule::Cast ? fmt::format("<{}>", to_string(stmt.dtype)) : "";
                   return fmt::format("{} = {}{}({})", ref(id), info(apply.op).name, type, list(apply.operands));
                 },
                 [&](const loops::Reduce& reduce) { return fmt::format("{} = {}({})", ref(id), info(reduce.reduction).name, ref(reduce.operand)); },
                 [&](const loops::Project& project) { return fmt::format("{} = result {} of {}", ref(id), project.result, ref(project.of)); },
                 [&](const loops::Store& store) {
                   const std::string combine = store.combine == Combine::Overwrite ? "" : fmt::format("<{}>", cxxinductor::name_of(store.combine));
                   const std::string update = store.update ? fmt::format("update{} ", combine) : "";
                   return fmt::format("{}: {}@{}[{}] = {}", ref(id), update, store.buffer.index(), offset(), ref(store.value));
                 },
                 [&](const loops::Check& check) { return fmt::format("{}: {} < {}", ref(id), ref(check.index), loops::print_expr(check.bound)); }},
      stmt.kind);
}

std::string_view name_of(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::LoadStates:
      return "load_states";
    case Step::Kind::StoreStates:
      return "store_states";
    case Step::Kind::Bring:
      return "bring";
    case Step::Kind::LoadGroup:
      return "load_group";
    case Step::Kind::Load:
      return "load";
    case Step::Kind::Compute:
      return "compute";
    case Step::Kind::Keep:
      return "keep";
    case Step::Kind::Reserve:
      return "reserve";
    case Step::Kind::BeginLanes:
      return "lanes";
    case Step::Kind::EndLanes:
      return "end";
    case Step::Kind::Fill:
      return "fill";
    case Step::Kind::Divide:
      return "divide";
    case Step::Kind::StoreGroup:
      return "store_group";
    case Step::Kind::Store:
      return "store";
    case Step::Kind::Check:
      return "check";
    case Step::Kind::Update:
      return "update";
    case Step::Kind::UpdateGroup:
      return "update_group";
  }
  return "?";
}

std::string_view name_of(Where where) {
  switch (where) {
    case Where::Value:
      return "value";
    case Where::Memory:
      return "memory";
    case Where::Group:
      return "group";
    case Where::Ahead:
      return "ahead";
    case Where::Next:
      return "next";
    case Where::Persistent:
      return "persistent";
    case Where::Tile:
      return "tile";
    case Where::Lanes:
      return "lanes";
    case Where::Columns:
      return "columns";
    case Where::State:
      return "state";
    case Where::Accumulators:
      return "accumulators";
    case Where::States:
      return "states";
    case Where::SharedStates:
      return "shared_states";
  }
  return "?";
}

std::string print_body(const Kernel& kernel, const Body& body) {
  TextWriter out;
  print_slot(out, kernel, body.slot);
  if (!body.ahead.empty()) out.line("ahead of it:");
  for (const std::vector<Step>* steps : {&body.ahead, &body.steps}) {
    out.indent();
    for (const Step& step : *steps) print_step(out, kernel, step);
    out.dedent();
    if (steps == &body.ahead && !body.ahead.empty()) out.line("then:");
  }
  return std::move(out).take();
}

}  // namespace cxxinductor::kernels
