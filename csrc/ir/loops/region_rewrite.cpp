#include "ir/loops/region_rewrite.h"

#include <algorithm>

#include "ir/loops/stmt_properties.h"
#include "ir/loops/stmt_traits.h"
#include "support/error.h"

namespace cxxinductor::loops {
namespace {

// A division of a plain variable by a factor of its extent.
struct SplitPoint {
  VarId var;
  sym::Expr inner, outer;
};

bool find_split(sym::Expr e, const Region& region, SplitPoint* split) {
  if (!has_division(e)) return false;
  for (sym::Expr operand : e.operands())
    if (find_split(operand, region, split)) return true;
  if (e.kind() != sym::Kind::FloorDiv && e.kind() != sym::Kind::Mod) return false;
  sym::Expr numerator = e.operands()[0], divisor = e.operands()[1];
  for (size_t v = 0; v < region.vars.size(); ++v) {
    if (region.symbol(VarId(v)) != numerator) continue;
    auto outer = exact_quotient(region.vars[VarId(v)].extent, divisor);
    if (!outer) return false;
    *split = {VarId(v), divisor, *outer};
    return true;
  }
  return false;
}

bool find_split(const Region& region, SplitPoint* split) {
  auto in_all = [&](const std::vector<sym::Expr>& coords) {
    return std::any_of(coords.begin(), coords.end(), [&](sym::Expr e) { return find_split(e, region, split); });
  };
  for (const Stmt& stmt : region.body) {
    if (const auto* load = stmt.as<Load>(); load && in_all(load->coords)) return true;
    if (const auto* store = stmt.as<Store>(); store && in_all(store->coords)) return true;
    if (const auto* index = stmt.as<Index>(); index && find_split(index->value, region, split)) return true;
  }
  return false;
}

constexpr size_t max_split_variables = 24;

void split_variable(Region& region, const SplitPoint& split, const sym::Assumptions& assumptions) {
  IdVector<VarId, Var> vars;
  ExprMap values;
  std::string inner_name = fresh_variable_name(region.vars);
  for (size_t v = 0; v < region.vars.size(); ++v) {
    const Var& var = region.vars[VarId(v)];
    if (VarId(v) != split.var) {
      vars.push_back(var);
      continue;
    }
    vars.push_back({var.name, split.outer});
    vars.push_back({inner_name, split.inner});
    values[sym::Expr::symbol(var.name)] = sym::Expr::symbol(var.name) * split.inner + sym::Expr::symbol(inner_name);
  }
  region = change_variables(region, vars, values, assumptions);
}

bool has_equal_statements(const Region& region) {
  std::unordered_multimap<size_t, StmtId> known;  // looked up, never iterated
  for (size_t s = 0; s < region.body.size(); ++s) {
    const size_t hash = hash_of(region.body[StmtId(s)]);
    for (auto [it, end] = known.equal_range(hash); it != end; ++it)
      if (same_statement(region.body[it->second], region.body[StmtId(s)])) return true;
    known.emplace(hash, StmtId(s));
  }
  return false;
}

}  // namespace

std::string fresh_variable_name(const IdVector<VarId, Var>& vars) {
  for (size_t n = vars.size();; ++n) {
    std::string name = fmt::format("i{}", n);
    if (std::none_of(vars.begin(), vars.end(), [&](const Var& var) { return var.name == name; })) return name;
  }
}

Renaming identity_renaming(const Region& region) {
  Renaming renaming{std::vector<StmtId>(region.body.size()), {}, {}};
  for (size_t v = 0; v < region.vars.size(); ++v) renaming.vars.push_back(VarSet::of(VarId(v)));
  return renaming;
}

BodyBuilder::BodyBuilder(Region& region, const sym::Assumptions& assumptions) : region_(region), space_(region, assumptions) {
  CXXI_CHECK(region.body.empty(), "the body of region {} is not empty", region.name);
  for (size_t v = 0; v < region.vars.size(); ++v) var_of_symbol_[region.symbol(VarId(v))] = VarId(v);
}

VarSet BodyBuilder::vars_of_expr(sym::Expr e) const {
  VarSet vars;
  for (sym::Expr symbol : e.free_symbols()) {
    if (auto found = var_of_symbol_.find(symbol); found != var_of_symbol_.end())
      vars |= VarSet::of(found->second);
    else if (StmtId id = statement_of_symbol(symbol.name()); id.valid())
      vars |= region_.body[id].vars;
  }
  return vars;
}

VarSet BodyBuilder::vars_of_stmt(const Stmt& stmt) const {
  VarSet vars;
  for_each_use(
      stmt, [&](StmtId id) { vars |= region_.body[id].vars; }, [&](sym::Expr e) { vars |= vars_of_expr(e); });
  return own_vars(stmt, vars);
}

StmtId BodyBuilder::emit(Stmt stmt) {
  size_t hash = hash_of(stmt);
  for (auto [it, end] = numbering_.equal_range(hash); it != end; ++it)
    if (same_statement(region_.body[it->second], stmt)) return it->second;
  stmt.vars = vars_of_stmt(stmt);
  StmtId id = region_.body.push_back(std::move(stmt));
  numbering_.emplace(hash, id);
  if (const auto* check = region_.body[id].as<Check>()) checked_.insert(check->index);
  return id;
}

std::optional<sym::Expr> expression_of(const Stmt& stmt) {
  if (const auto* index = stmt.as<Index>()) return depends_on_data(index->value) ? std::nullopt : std::optional(index->value);
  const auto* constant = stmt.as<Constant>();
  return constant && stmt.dtype == DType::I64 ? std::optional(sym::Expr(constant->value.integer())) : std::nullopt;
}

std::optional<sym::Expr> BodyBuilder::position_of(StmtId now) const { return checked_.contains(now) ? std::nullopt : expression_of(region_.body[now]); }

sym::Expr BodyBuilder::with_positions(sym::Expr e) const {
  ExprMap positions;
  for (sym::Expr symbol : e.free_symbols())
    if (const StmtId id = statement_of_symbol(symbol.name()); id.valid())
      if (const auto position = position_of(id)) positions[symbol] = *position;
  return positions.empty() ? e : replace(e, positions);
}

Stmt BodyBuilder::renamed(const Stmt& stmt, const Renaming& renaming) const {
  Stmt result = stmt;
  const auto statement = [&](StmtId& id) {
    id = renaming.statements[id.index()];
    CXXI_CHECK(id.valid(), "a statement of region {} is used before it is emitted", region_.name);
  };
  for_each_use(result, statement, [&](sym::Expr& e) { e = space_.simplify(with_positions(replace(e, renaming.expressions))); });
  if (const auto state = row_state(result)) {
    VarSet over;
    for (size_t v = 0; v < renaming.vars.size(); ++v)
      if (state->over.contains(VarId(v))) over |= renaming.vars[v];
    set_row(result, state->operand, over);
  }
  return result;
}

void BodyBuilder::bind(StmtId old, StmtId now, Renaming& renaming) const {
  renaming.statements[old.index()] = now;
  // Symbols of statements are only ever read from integers.
  if (is_integer(region_.body[now].dtype)) renaming.expressions[statement_symbol(old)] = statement_symbol(now);
}

StmtId BodyBuilder::emit_renamed(const Region& from, StmtId old, Renaming& renaming) {
  Stmt stmt = renamed(from.body[old], renaming);
  if (const auto state = row_state(stmt)) set_row(stmt, spread(state->operand, state->over, stmt.origin), state->over);
  StmtId now = emit(std::move(stmt));
  bind(old, now, renaming);
  return now;
}

StmtId BodyBuilder::spread(StmtId operand, VarSet over, OriginId origin) {
  for (size_t v = 0; v < region_.vars.size(); ++v) {
    const VarSet var = VarSet::of(VarId(v));
    if (!var.subset_of(over) || var.subset_of(region_.body[operand].vars)) continue;
    const StmtId position = emit({Index{region_.symbol(VarId(v))}, DType::I64, {}, origin});
    const StmtId zero = emit({Constant{Scalar::from_integer(DType::I64, 0)}, DType::I64, {}, origin});
    const StmtId always = emit({Apply{ScalarOp::Ge, {position, zero}}, DType::Bool, {}, origin});
    operand = emit({Apply{ScalarOp::Where, {always, operand, operand}}, region_.body[operand].dtype, {}, origin});
  }
  return operand;
}

Region change_variables(const Region& region, const IdVector<VarId, Var>& vars, const ExprMap& values, const sym::Assumptions& assumptions) {
  Region result{region.name, region.device, vars, {}};
  BodyBuilder builder(result, assumptions);
  Renaming renaming{std::vector<StmtId>(region.body.size()), values, {}};
  for (size_t v = 0; v < region.vars.size(); ++v) {
    auto value = values.find(region.symbol(VarId(v)));
    renaming.vars.push_back(builder.vars_of_expr(value == values.end() ? region.symbol(VarId(v)) : value->second));
  }
  for (size_t s = 0; s < region.body.size(); ++s) builder.emit_renamed(region, StmtId(s), renaming);
  return result;
}

void spread_reductions(Region& region, const sym::Assumptions& assumptions) {
  const VarSet all = all_vars(region);
  const bool full = std::all_of(region.body.begin(), region.body.end(), [&](const Stmt& stmt) {
    const auto state = row_state(stmt);
    return !state || region.body[state->operand].vars == all;
  });
  if (full) return;
  Region result{region.name, region.device, region.vars, {}};
  BodyBuilder builder(result, assumptions);
  Renaming renaming = identity_renaming(region);
  for (size_t s = 0; s < region.body.size(); ++s) {
    Stmt stmt = builder.renamed(region.body[StmtId(s)], renaming);
    if (const auto state = row_state(stmt)) set_row(stmt, builder.spread(state->operand, all, stmt.origin), state->over);
    builder.bind(StmtId(s), builder.emit(std::move(stmt)), renaming);
  }
  region = std::move(result);
}

// Loads of one buffer are equal wherever they stand: no region loads what it has stored (L6).
void remove_dead_statements(Region& region) {
  std::vector<bool> live(region.body.size(), false);
  bool any_dead = false;
  for (size_t s = region.body.size(); s-- > 0;) {
    const Stmt& stmt = region.body[StmtId(s)];
    if (is_effect(stmt)) live[s] = true;
    if (!live[s]) {
      any_dead = true;
      continue;
    }
    for (StmtId operand : operands(stmt)) live[operand.index()] = true;
  }
  if (!any_dead && !has_equal_statements(region)) return;
  Region result{region.name, region.device, region.vars, {}};
  sym::Assumptions none;
  BodyBuilder builder(result, none);
  Renaming renaming = identity_renaming(region);
  for (size_t s = 0; s < region.body.size(); ++s)
    if (live[s]) builder.emit_renamed(region, StmtId(s), renaming);
  region = std::move(result);
}

void drop_unit_variables(Region& region, const sym::Assumptions& assumptions) {
  VarSet unit;
  for (size_t v = 0; v < region.vars.size(); ++v)
    if (region.vars[VarId(v)].extent.is_constant(1)) unit |= VarSet::of(VarId(v));
  for (const Stmt& stmt : region.body) {
    const auto state = row_state(stmt);
    if (!state || !state->over.subset_of(unit)) continue;
    for (size_t v = 0; v < region.vars.size(); ++v) {
      if (!state->over.contains(VarId(v))) continue;
      unit = unit - VarSet::of(VarId(v));
      break;
    }
  }
  if (unit.empty()) return;
  IdVector<VarId, Var> vars;
  ExprMap values;
  for (size_t v = 0; v < region.vars.size(); ++v) {
    if (unit.contains(VarId(v)))
      values[region.symbol(VarId(v))] = 0;
    else
      vars.push_back(region.vars[VarId(v)]);
  }
  region = change_variables(region, vars, values, assumptions);
}

void split_variables(Region& region, const sym::Assumptions& assumptions) {
  SplitPoint split;
  while (region.vars.size() < max_split_variables && find_split(region, &split)) split_variable(region, split, assumptions);
}

bool split_variable_for(Region& region, sym::Expr e, const sym::Assumptions& assumptions) {
  SplitPoint split;
  if (region.vars.size() >= max_split_variables || !find_split(e, region, &split)) return false;
  split_variable(region, split, assumptions);
  return true;
}

void number_variables(Region& region, const sym::Assumptions& assumptions) {
  bool numbered = true;
  IdVector<VarId, Var> vars;
  ExprMap values;
  for (size_t v = 0; v < region.vars.size(); ++v) {
    std::string name = fmt::format("i{}", v);
    numbered = numbered && region.vars[VarId(v)].name == name;
    values[region.symbol(VarId(v))] = sym::Expr::symbol(name);
    vars.push_back({std::move(name), region.vars[VarId(v)].extent, region.vars[VarId(v)].serial});
  }
  if (!numbered) region = change_variables(region, vars, values, assumptions);
}

}  // namespace cxxinductor::loops
