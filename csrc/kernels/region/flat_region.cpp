#include "kernels/region/flat_region.h"

#include <algorithm>

#include "ir/device_types.h"
#include "ir/loops/index_algebra.h"
#include "ir/loops/stmt_properties.h"
#include "ir/loops/stmt_traits.h"
#include "ir/plan/mapping.h"
#include "ir/strides.h"
#include "kernels/region/region_edit.h"
#include "support/error.h"

namespace cxxinductor::kernels {
namespace {

using loops::Stmt;
using loops::StmtId;
using loops::VarId;
using loops::VarSet;
using sym::Expr;

// Reductions over the serial variable, by statement; asked before variables change.
std::vector<bool> reductions_across(const FlatRegion& flat) {
  std::vector<bool> across;
  for (size_t s = 0; s < flat.region.body.size(); ++s) across.push_back(flat.is_across(StmtId(s)));
  return across;
}

// Recomputes `vars` of every statement and the row of every state from expressions and operands.
void infer_vars(FlatRegion& flat, const std::vector<bool>& across) {
  loops::Region& region = flat.region;
  for (size_t s = 0; s < region.body.size(); ++s) {
    Stmt& stmt = region.body[StmtId(s)];
    VarSet vars;
    auto add = [&](StmtId id) {
      if (id.valid()) vars |= region.body[id].vars;
    };
    for (StmtId id : operands(stmt)) add(id);
    rewrite_expressions(stmt, [&](Expr e) {
      vars |= vars_of(region, e);
      return e;
    });
    if (const auto state = row_state(stmt)) set_row(stmt, state->operand, across[s] ? VarSet::of(flat.serial) : flat.row_set());
    stmt.vars = own_vars(stmt, vars);
  }
}

void infer_assumptions(FlatRegion& flat) {
  flat.assumptions = flat.program_assumptions;
  for (const loops::Var& var : flat.region.vars) {
    sym::Interval extent = bounds(var.extent, flat.program_assumptions);
    // A variable that may have no value is assumed to have two: with one it would equal that value, and what depends on it would
    // leave a loop that does not run.
    const int64_t least = extent.low < 1 ? 1 : 0;
    int64_t high = extent.high == sym::Interval().high ? extent.high : std::max<int64_t>(extent.high - 1, least);
    flat.assumptions.set_range(var.name, {0, high});
  }
}

void drop_unit_variables(FlatRegion& flat) {
  IdVector<VarId, loops::Var> vars;
  std::vector<VarId> space, row;
  sym::Substitution gone;
  auto keep = [&](const std::vector<VarId>& from, std::vector<VarId>& to, bool needs_one) {
    for (size_t k = 0; k < from.size(); ++k) {
      const loops::Var& var = flat.region.vars[from[k]];
      bool last_chance = needs_one && to.empty() && k + 1 == from.size();
      if (var.extent.is_constant(1) && !last_chance)
        gone.emplace(var.name, Expr(0));
      else
        to.push_back(vars.push_back(var));
    }
  };
  keep(flat.space, space, false);
  VarId serial;
  if (flat.serial.valid()) serial = vars.push_back(flat.region.vars[flat.serial]);
  keep(flat.row, row, true);
  replace_variables(flat, std::move(vars), std::move(space), std::move(row), serial, gone);
}

// Where there is an element to access, no dimension is empty.
Expr stride_of_elements(const loops::Buffer& buffer, size_t d, const sym::Assumptions& assumptions) {
  const Expr stride = buffer.strides[d];
  if (stride.is_constant() || stride.is_symbol()) return stride;
  return simplify(stride, assume_nonempty(buffer.sizes, assumptions));
}

void flatten_accesses(loops::Region& region, const loops::Program& program, const sym::Assumptions& assumptions) {
  loops::Space space(region, assumptions);
  for (Stmt& stmt : region.body) {
    auto flatten_one = [&](loops::BufferId id, std::vector<Expr>& coords) {
      const loops::Buffer& buffer = program.buffers[id];
      CXXI_CHECK(coords.size() == buffer.strides.size(), "region {} accesses {} of rank {} with {} coordinates", region.name, buffer.name,
                 buffer.strides.size(), coords.size());
      const bool by_value = buffer.sizes.empty() && in_host_memory(buffer.device) && stmt.as<loops::Load>();
      CXXI_CHECK(buffer.device == region.device || by_value, "region {} on {} accesses {} on {}", region.name, to_string(region.device), buffer.name,
                 to_string(buffer.device));
      Expr offset = 0;
      for (size_t d = 0; d < coords.size(); ++d)
        if (!buffer.sizes[d].is_constant(1)) offset = offset + coords[d] * stride_of_elements(buffer, d, assumptions);
      coords = {simplify(space.simplify(loops::expand(offset)), assumptions)};
    };
    if (auto* load = stmt.as<loops::Load>()) flatten_one(load->buffer, load->coords);
    if (auto* store = stmt.as<loops::Store>()) flatten_one(store->buffer, store->coords);
  }
}

}  // namespace

VarSet FlatRegion::row_set() const { return VarSet::of(row); }

bool FlatRegion::is_across(StmtId id) const {
  const auto state = row_state(region.body[id]);
  return state && serial.valid() && state->over == VarSet::of(serial);
}

bool FlatRegion::is_finishing(StmtId id) const {
  const auto* store = region.body[id].as<loops::Store>();
  return store && is_across(store->value);
}

bool FlatRegion::is_row_varying(const Stmt& stmt) const { return row_state(stmt) || !(stmt.vars & row_set()).empty(); }

Expr offset_of(const Stmt& stmt) {
  if (const auto* load = stmt.as<loops::Load>()) return load->coords.front();
  return stmt.as<loops::Store>()->coords.front();
}

std::optional<Linear> linear_in(const loops::Region& region, Expr e, VarId v) {
  Linear linear;
  if (!split_linear(e, region.symbol(v), &linear.coefficient, &linear.rest)) return {};
  if ((vars_of(region, linear.coefficient) | vars_of(region, linear.rest)).contains(v)) return {};
  return linear;
}

Expr points(const FlatRegion& flat, const std::vector<VarId>& vars) {
  Expr product = 1;
  for (VarId v : vars) product = product * flat.extent(v);
  return simplify(product, flat.assumptions);
}

Expr group_count(const FlatRegion& flat, const std::vector<VarId>& vars, int width) {
  return simplify(plan::groups_of(flat.region, vars, width), flat.assumptions);
}

void replace_variables(FlatRegion& flat, IdVector<VarId, loops::Var> vars, std::vector<VarId> space, std::vector<VarId> row, VarId serial,
                       const sym::Substitution& replacements) {
  const std::vector<bool> across = reductions_across(flat);
  flat.region.vars = std::move(vars);
  flat.space = std::move(space);
  flat.row = std::move(row);
  flat.serial = serial;
  infer_assumptions(flat);
  for (Stmt& stmt : flat.region.body) rewrite_expressions(stmt, [&](Expr e) { return simplify(substitute(e, replacements), flat.assumptions); });
  infer_vars(flat, across);
}

FlatRegion flatten(const loops::Program& program, const loops::Region& region, const sym::Assumptions& assumptions) {
  FlatRegion flat;
  flat.region = region;
  flat.program_assumptions = assumptions;
  flat.serial = loops::serial_var(region);
  VarSet serial = flat.serial.valid() ? VarSet::of(flat.serial) : VarSet();
  VarSet row = reduced_vars(region) - serial;
  for (const Stmt& stmt : region.body)
    if (const auto state = row_state(stmt)) CXXI_CHECK(state->over == row || state->over == serial, "region {} reduces over different variables", region.name);
  for (size_t v = 0; v < region.vars.size(); ++v) {
    flat.region.vars[VarId(v)] = {region.vars[VarId(v)].name, simplify(region.vars[VarId(v)].extent, assumptions)};
    if (VarId(v) == flat.serial) continue;
    (row.contains(VarId(v)) ? flat.row : flat.space).push_back(VarId(v));
  }
  infer_assumptions(flat);
  flatten_accesses(flat.region, program, flat.assumptions);
  drop_dead(flat.region);
  drop_unit_variables(flat);
  merge_equal(flat.region);
  infer_vars(flat, reductions_across(flat));
  return flat;
}

}  // namespace cxxinductor::kernels
