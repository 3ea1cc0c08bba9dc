// Replaces sums over a one-hot row by a select: the sum over r of (r == q ? a : 0) is a if q is one of the positions, else 0.
// Backwards of losses contain many of them, and need no loop over the row without them.
#include <optional>

#include "ir/loops/region_rewrite.h"
#include "passes/loops/passes.h"

namespace cxxinductor::passes {
namespace {

using loops::Apply;
using loops::Region;
using loops::Stmt;
using loops::StmtId;
using loops::VarId;
using loops::VarSet;

bool is_zero(const Region& region, StmtId id) {
  const auto* constant = region.body[id].as<loops::Constant>();
  return constant && !constant->value.truth();
}

// sum over `var` of (position == place and the other conditions ? value : 0), where position is var + offset, and only it varies over the sum.
struct OneHot {
  VarId var;
  sym::Expr offset;
  StmtId place, value;
  std::vector<StmtId> conditions;
};

class Finder {
 public:
  Finder(const Region& region, VarSet over) : region_(region), over_(over) {}

  std::optional<OneHot> find(StmtId summed) {
    const auto* choice = region_.body[summed].as<Apply>();
    if (!choice || choice->op != ScalarOp::Where || !is_zero(region_, choice->operands[2]) || moves(choice->operands[1])) return std::nullopt;
    found_.value = choice->operands[1];
    if (!split(choice->operands[0]) || !found_.place.valid()) return std::nullopt;
    return found_;
  }

 private:
  bool moves(StmtId id) const { return !(region_.body[id].vars & over_).empty(); }

  // The terms of a conjunction; exactly one of them may vary over the sum, and must be a comparison of positions.
  bool split(StmtId condition) {
    if (!moves(condition)) {
      found_.conditions.push_back(condition);
      return true;
    }
    const auto* apply = region_.body[condition].as<Apply>();
    if (!apply) return false;
    const bool truths = apply->op == ScalarOp::LogicalAnd || apply->op == ScalarOp::BitAnd;
    if (truths && region_.body[condition].dtype == DType::Bool) return split(apply->operands[0]) && split(apply->operands[1]);
    if (apply->op != ScalarOp::Eq || found_.place.valid()) return false;
    return compares(apply->operands[0], apply->operands[1]) || compares(apply->operands[1], apply->operands[0]);
  }

  bool compares(StmtId position, StmtId place) {
    const auto* index = region_.body[position].as<loops::Index>();
    if (!index || moves(place) || region_.body[place].dtype != DType::I64) return false;
    for (size_t v = 0; v < region_.vars.size(); ++v) {
      if (over_ != VarSet::of(VarId(v))) continue;
      sym::Expr coefficient, rest;
      if (!sym::split_linear(index->value, region_.symbol(VarId(v)), &coefficient, &rest) || !coefficient.is_constant(1)) return false;
      if (!(loops::vars_of(region_, rest) & over_).empty()) return false;
      found_.var = VarId(v);
      found_.offset = rest;
      found_.place = place;
      return true;
    }
    return false;
  }

  const Region& region_;
  const VarSet over_;
  OneHot found_;
};

class Rewriter {
 public:
  Rewriter(const Region& region, const sym::Assumptions& assumptions)
      : region_(region), result_{region.name, region.device, region.vars, {}}, builder_(result_, assumptions), renaming_(loops::identity_renaming(region)) {}

  bool run() {
    bool changed = false;
    for (size_t s = 0; s < region_.body.size(); ++s) {
      const auto* reduce = region_.body[StmtId(s)].as<loops::Reduce>();
      std::optional<OneHot> found;
      if (reduce && reduce->reduction == Reduction::Sum) found = Finder(region_, reduce->over).find(reduce->operand);
      if (!found) {
        builder_.emit_renamed(region_, StmtId(s), renaming_);
        continue;
      }
      builder_.bind(StmtId(s), chosen(*found, region_.body[StmtId(s)]), renaming_);
      changed = true;
    }
    return changed;
  }
  Region take() {
    loops::remove_dead_statements(result_);
    return std::move(result_);
  }

 private:
  StmtId now(StmtId old) const { return renaming_.statements[old.index()]; }

  StmtId truth(ScalarOp op, StmtId a, StmtId b, OriginId origin) { return builder_.emit({Apply{op, {a, b}}, DType::Bool, {}, origin}); }

  StmtId chosen(const OneHot& sum, const Stmt& stmt) {
    const auto bound = [&](sym::Expr e) { return builder_.emit({loops::Index{e}, DType::I64, {}, stmt.origin}); };
    const sym::Expr begin = loops::replace(sum.offset, renaming_.expressions), end = begin + region_.vars[sum.var].extent;
    StmtId condition = truth(ScalarOp::LogicalAnd, truth(ScalarOp::Ge, now(sum.place), bound(begin), stmt.origin),
                             truth(ScalarOp::Lt, now(sum.place), bound(end), stmt.origin), stmt.origin);
    for (StmtId other : sum.conditions) condition = truth(ScalarOp::LogicalAnd, condition, now(other), stmt.origin);
    const StmtId zero = builder_.emit({loops::Constant{Scalar::from_integer(stmt.dtype, 0)}, stmt.dtype, {}, stmt.origin});
    return builder_.emit({Apply{ScalarOp::Where, {condition, now(sum.value), zero}}, stmt.dtype, {}, stmt.origin});
  }

  const Region& region_;
  Region result_;
  loops::BodyBuilder builder_;
  loops::Renaming renaming_;
};

}  // namespace

bool one_hot_to_select(loops::Program& program, const Options&) {
  bool changed = false;
  for (loops::Step& step : program.steps) {
    auto* region = std::get_if<Region>(&step);
    if (!region || loops::reduced_vars(*region).empty()) continue;
    Rewriter rewriter(*region, program.assumptions);
    if (!rewriter.run()) continue;
    *region = rewriter.take();
    changed = true;
  }
  return changed;
}

}  // namespace cxxinductor::passes
