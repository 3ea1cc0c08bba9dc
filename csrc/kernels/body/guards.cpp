#include "kernels/body/guards.h"

#include <algorithm>
#include <set>

#include "ir/loops/stmt_properties.h"
#include "ir/plan/serial_rows.h"
#include "kernels/body/slots.h"

namespace cxxinductor::kernels {
namespace {

using plan::Kernel;

std::vector<VarId> missing(const Kernel& kernel, loops::VarSet running, loops::VarSet vars) {
  std::vector<VarId> found;
  for (size_t v = 0; v < kernel.region.vars.size(); ++v)
    if (running.contains(VarId(v)) && !vars.contains(VarId(v))) found.emplace_back(v);
  return found;
}

// Checks of the values that an address is computed from, as far as the slot computes them.
std::vector<StmtId> checks_of(const Kernel& kernel, const Slot& slot, sym::Expr offset) {
  std::vector<StmtId> found, pending;
  std::set<StmtId> seen;
  for (sym::Expr symbol : offset.free_symbols())
    if (const StmtId id = loops::statement_of_symbol(symbol.name()); id.valid()) pending.push_back(id);
  while (!pending.empty()) {
    const StmtId id = pending.back();
    pending.pop_back();
    if (!seen.insert(id).second) continue;
    bool checked = false;
    for (size_t s = 0; s < kernel.region.body.size(); ++s) {
      const auto* check = kernel.region.body[StmtId(s)].as<loops::Check>();
      if (!check || check->index != id) continue;
      checked = true;
      found.emplace_back(s);
    }
    if (checked || std::ranges::find(slot.stmts, id) == slot.stmts.end()) continue;
    const loops::Stmt& stmt = kernel.region.body[id];
    if (!stmt.as<loops::Apply>() && !stmt.as<loops::Index>()) continue;
    for (StmtId operand : loops::operands(stmt)) pending.push_back(operand);
  }
  return found;
}

}  // namespace

Guard guard_of(const Kernel& kernel, const Slot& slot, StmtId id) {
  const loops::Stmt& stmt = kernel.region.body[id];
  Guard guard;
  if (const auto state = row_state(stmt)) {
    // Variables of the row that it does not reduce over count once.
    loops::VarSet row;
    for (VarId v : kernel.mapping.row) row |= loops::VarSet::of(v);
    if (!plan::is_across(kernel, id)) guard.once = missing(kernel, row, state->over);
    return guard;
  }
  guard.lanes = slot.masked_tail && has_lanes(kernel, slot, id);
  const auto* load = stmt.as<loops::Load>();
  const auto* store = stmt.as<loops::Store>();
  if (load) guard.mask = load->mask;
  if (store) guard.mask = store->mask;
  if ((load || store) && !slot.checks_return) guard.in_range = checks_of(kernel, slot, kernel.offsets[id]);
  if (load) return guard;
  guard.effects = slot.effects != Effects();
  guard.once = missing(kernel, slot.running, stmt.vars);
  return guard;
}

}  // namespace cxxinductor::kernels
