#include "schedule/plan/partition_region.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/loops/region_rewrite.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using loops::Apply;
using loops::Region;
using loops::Stmt;
using loops::StmtId;
using loops::VarId;
using sym::Expr;

constexpr size_t most_boundaries = 256;

bool compares(ScalarOp op) {
  return op == ScalarOp::Lt || op == ScalarOp::Le || op == ScalarOp::Gt || op == ScalarOp::Ge || op == ScalarOp::Eq || op == ScalarOp::Ne;
}

// Rebuilds what the store needs, backwards from the store.
class Cutter {
 public:
  Cutter(const Region& from, VarId var, Expr begin, Expr extent, const sym::Assumptions& assumptions)
      : from_(from),
        result_{from.name, from.device, variables(from, var, extent), {}},
        builder_(result_, assumptions),
        renaming_{std::vector<StmtId>(from.body.size()), {}, {}} {
    const Expr symbol = from.symbol(var);
    renaming_.expressions[symbol] = extent.is_constant(1) ? begin : loops::expand(symbol + begin);
  }

  Region run() {
    for (size_t s = 0; s < from_.body.size(); ++s)
      if (from_.body[StmtId(s)].as<loops::Store>()) value_of(StmtId(s));
    loops::remove_dead_statements(result_);
    return std::move(result_);
  }

 private:
  static IdVector<VarId, loops::Var> variables(const Region& from, VarId var, Expr extent) {
    IdVector<VarId, loops::Var> vars;
    for (size_t v = 0; v < from.vars.size(); ++v) {
      if (VarId(v) != var)
        vars.push_back(from.vars[VarId(v)]);
      else if (!extent.is_constant(1))
        vars.push_back({from.vars[var].name, extent});
    }
    return vars;
  }

  StmtId value_of(StmtId old) {
    if (const StmtId known = renaming_.statements[old.index()]; known.valid()) return known;
    const StmtId now = make(old);
    builder_.bind(old, now, renaming_);
    return now;
  }

  StmtId make(StmtId old) {
    Stmt stmt = from_.body[old];
    if (const auto* apply = stmt.as<Apply>(); apply && apply->op == ScalarOp::Where)
      if (const auto truth = truth_of(apply->operands[0])) return value_of(apply->operands[*truth ? 1 : 2]);
    if (auto* load = stmt.as<loops::Load>(); load && load->mask.valid())
      if (const auto truth = truth_of(load->mask)) {
        if (!*truth) return builder_.emit({loops::Constant{load->other}, stmt.dtype, {}, stmt.origin});
        load->mask = {};
      }
    for (StmtId operand : loops::operands(stmt)) value_of(operand);
    stmt = builder_.renamed(stmt, renaming_);
    if (const auto* apply = stmt.as<Apply>(); apply && apply->op == ScalarOp::Cast)
      if (const StmtId same = narrow_again(apply->operands[0], stmt.dtype); same.valid()) return same;
    return builder_.emit(std::move(stmt));
  }

  // What a wide value was before it was widened, if that is of this dtype.
  StmtId narrow_again(StmtId wide, DType dtype) const {
    const auto* widening = result_.body[wide].as<Apply>();
    if (!widening || widening->op != ScalarOp::Cast || compute_type(dtype) != result_.body[wide].dtype) return {};
    const StmtId narrow = widening->operands[0];
    return result_.body[narrow].dtype == dtype ? narrow : StmtId();
  }

  // Of a condition of the old body, where it is the same at all points that are left.
  std::optional<bool> truth_of(StmtId old) {
    if (const auto found = truths_.find(old); found != truths_.end()) return found->second;
    return truths_[old] = find_truth(old);
  }

  std::optional<bool> find_truth(StmtId old) {
    const Stmt& stmt = from_.body[old];
    if (const auto* constant = stmt.as<loops::Constant>()) return constant->value.truth();
    const auto* apply = stmt.as<Apply>();
    if (!apply || stmt.dtype != DType::Bool) return std::nullopt;
    if (apply->op == ScalarOp::LogicalNot) {
      const auto truth = truth_of(apply->operands[0]);
      return truth ? std::optional(!*truth) : std::nullopt;
    }
    if (apply->op == ScalarOp::LogicalAnd) {
      const auto a = truth_of(apply->operands[0]), b = truth_of(apply->operands[1]);
      if ((a && !*a) || (b && !*b)) return false;
      return a && b ? std::optional(true) : std::nullopt;
    }
    if (!compares(apply->op)) return std::nullopt;
    const auto a = expression_of(from_.body[apply->operands[0]]), b = expression_of(from_.body[apply->operands[1]]);
    if (!a || !b) return std::nullopt;
    const auto here = [&](Expr e) { return builder_.space().simplify(loops::replace(e, renaming_.expressions)); };
    return builder_.space().decide(apply->op, here(*a), here(*b));
  }

  const Region& from_;
  Region result_;
  loops::BodyBuilder builder_;
  loops::Renaming renaming_;
  std::map<StmtId, std::optional<bool>> truths_;
};

}  // namespace

std::vector<Expr> find_boundaries(const Region& region, VarId var, const sym::Assumptions& assumptions) {
  const loops::Space space(assumptions);
  const Expr extent = region.vars[var].extent;
  std::vector<Expr> boundaries{0, extent};
  loops::ExprMap origin;
  for (size_t v = 0; v < region.vars.size(); ++v) origin[region.symbol(VarId(v))] = 0;
  // Keeps the boundaries in order and drops those that cannot be compared with all others.
  const auto add = [&](Expr position) {
    size_t at = 0;
    while (at < boundaries.size() && space.at_least(position, boundaries[at])) ++at;
    if (at == 0 || at == boundaries.size() || space.equal(position, boundaries[at - 1])) return;
    if (space.at_least(boundaries[at], position)) boundaries.insert(boundaries.begin() + static_cast<std::ptrdiff_t>(at), position);
  };
  for (const Stmt& stmt : region.body) {
    const auto* apply = stmt.as<Apply>();
    if (!apply || !compares(apply->op) || boundaries.size() > most_boundaries) continue;
    const auto a = expression_of(region.body[apply->operands[0]]), b = expression_of(region.body[apply->operands[1]]);
    if (!a || !b) continue;
    Expr step, rest;
    const Expr difference = loops::expand(*a - *b);
    if (!sym::split_linear(difference, region.symbol(var), &step, &rest) || step.is_constant(0)) continue;
    const auto position = loops::exact_quotient(loops::replace(loops::expand(Expr(0) - rest), origin), step);
    if (!position) continue;
    if (apply->op != ScalarOp::Gt && apply->op != ScalarOp::Le) add(sym::simplify(*position, assumptions));
    if (apply->op != ScalarOp::Lt && apply->op != ScalarOp::Ge) add(sym::simplify(*position + 1, assumptions));
  }
  return boundaries;
}

Region partition_region(const Region& region, VarId var, Expr begin, Expr extent, const sym::Assumptions& assumptions) {
  return Cutter(region, var, begin, extent, assumptions).run();
}

}  // namespace cxxinductor::schedule
