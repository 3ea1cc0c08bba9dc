#include "ir/plan/uniform_masks.h"

#include <algorithm>
#include <optional>

namespace cxxinductor::plan {
namespace {

using sym::Expr;

constexpr size_t most_cuts = 32;

class Finder {
 public:
  Finder(const Kernel& kernel, VarId variable) : kernel_(kernel), variable_(variable) {}

  void visit(StmtId id) {
    const auto* apply = stmt(id).as<loops::Apply>();
    if (!apply || stmt(id).dtype != DType::Bool || !varies(id)) return;
    if (const auto cuts = cuts_of(*apply)) {
      for (Expr cut : *cuts)
        if (std::ranges::find(found_.cuts, cut) == found_.cuts.end()) found_.cuts.push_back(cut);
      found_.stmts.insert(id);
    } else if (is_logical(apply->op) &&
               std::ranges::all_of(apply->operands, [&](StmtId operand) { return !varies(operand) || found_.stmts.contains(operand); })) {
      found_.stmts.insert(id);
    }
  }

  UniformMasks result() && { return found_.cuts.size() > most_cuts ? UniformMasks() : std::move(found_); }

 private:
  const loops::Stmt& stmt(StmtId id) const { return kernel_.region.body[id]; }
  bool varies(StmtId id) const { return stmt(id).vars.contains(variable_); }

  static bool is_logical(ScalarOp op) { return op == ScalarOp::LogicalAnd || op == ScalarOp::LogicalOr || op == ScalarOp::LogicalNot; }

  // An integer that is made of positions alone.
  std::optional<Expr> position(StmtId id) const {
    if (const auto* index = stmt(id).as<loops::Index>()) {
      for (Expr symbol : index->value.free_symbols())
        if (loops::statement_of_symbol(symbol.name()).valid()) return std::nullopt;
      return index->value;
    }
    const auto* constant = stmt(id).as<loops::Constant>();
    if (!constant || is_float(constant->value.dtype())) return std::nullopt;
    return Expr(constant->value.integer());
  }

  // Where left - right, which grows or falls by one from lane to lane, changes from < 0 to = 0 and to > 0.
  std::optional<std::vector<Expr>> cuts_of(const loops::Apply& apply) const {
    const ScalarOp op = apply.op;
    const bool below = op == ScalarOp::Lt || op == ScalarOp::Ge, above = op == ScalarOp::Le || op == ScalarOp::Gt;
    const bool equal = op == ScalarOp::Eq || op == ScalarOp::Ne;
    if (!below && !above && !equal) return std::nullopt;
    const auto left = position(apply.operands[0]), right = position(apply.operands[1]);
    if (!left || !right) return std::nullopt;
    Expr step, rest;
    if (!sym::split_linear(*left - *right, kernel_.region.symbol(variable_), &step, &rest)) return std::nullopt;
    // At position p the difference is p + rest, or rest - p.
    const bool rises = step.is_constant(1);
    if (!rises && !step.is_constant(-1)) return std::nullopt;
    const Expr zero = rises ? Expr(0) - rest : rest;
    if (equal) return std::vector{zero, zero + 1};
    return std::vector{below == rises ? zero : zero + 1};
  }

  const Kernel& kernel_;
  const VarId variable_;
  UniformMasks found_;
};

}  // namespace

UniformMasks find_uniform_masks(const Kernel& kernel, const std::vector<StmtId>& stmts, VarId variable) {
  Finder finder(kernel, variable);
  for (StmtId id : stmts) finder.visit(id);
  return std::move(finder).result();
}

}  // namespace cxxinductor::plan
