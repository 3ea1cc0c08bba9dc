// Folds statements whose value is an integer expression of positions and sizes. Sums and products become index expressions,
// comparisons that the extents decide become constants and choose, and accesses need neither a data-dependent coordinate nor a check.
// Positions reach regions when fusion inlines an iota.
#include <algorithm>
#include <optional>

#include "ir/loops/region_rewrite.h"
#include "ir/loops/stmt_properties.h"
#include "ir/loops/stmt_traits.h"
#include "passes/loops/passes.h"

namespace cxxinductor::passes {
namespace {

using loops::Apply;
using loops::Stmt;
using loops::StmtId;

class IndexFolder {
 public:
  IndexFolder(const loops::Region& region, const sym::Assumptions& assumptions)
      : region_(region), result_{region.name, region.device, region.vars, {}}, builder_(result_, assumptions), renaming_(loops::identity_renaming(region)) {}

  bool run() {
    for (size_t s = 0; s < region_.body.size(); ++s) emit(StmtId(s));
    return changed_;
  }
  loops::Region take() { return std::move(result_); }

 private:
  // The value of an i64 statement as an expression, of data too.
  std::optional<sym::Expr> value_of(StmtId id) const {
    const Stmt& stmt = result_.body[id];
    if (const auto* index = stmt.as<loops::Index>()) return index->value;
    const auto* constant = stmt.as<loops::Constant>();
    if (constant && stmt.dtype == DType::I64) return sym::Expr(constant->value.integer());
    return std::nullopt;
  }

  // A coordinate that names a statement without data, which renaming replaces.
  bool names_position(const Stmt& stmt) const {
    bool found = false;
    loops::for_each_use(
        stmt, [](StmtId) {},
        [&](sym::Expr e) {
          for (sym::Expr symbol : e.free_symbols())
            if (const StmtId id = loops::statement_of_symbol(symbol.name()); id.valid())
              found = found || builder_.position_of(renaming_.statements[id.index()]).has_value();
        });
    return found;
  }

  void emit(StmtId old) {
    changed_ = changed_ || names_position(region_.body[old]);
    Stmt stmt = builder_.renamed(region_.body[old], renaming_);
    if (const auto* check = stmt.as<loops::Check>())
      if (auto index = value_of(check->index); index && builder_.space().in_range(*index, check->bound)) {
        changed_ = true;
        return;
      }
    if (const auto* apply = stmt.as<Apply>()) {
      if (StmtId same = folded(*apply); same.valid()) {
        builder_.bind(old, same, renaming_);
        return;
      }
    }
    builder_.bind(old, builder_.emit(std::move(stmt)), renaming_);
  }

  StmtId folded(const Apply& apply) {
    if (apply.op == ScalarOp::Where) {
      const auto* condition = result_.body[apply.operands[0]].as<loops::Constant>();
      if (!condition) return {};
      changed_ = true;
      return apply.operands[condition->value.truth() ? 1 : 2];
    }
    if (apply.operands.size() != 2) return {};
    auto a = value_of(apply.operands[0]), b = value_of(apply.operands[1]);
    if (!a || !b) return {};
    if (auto truth = builder_.space().decide(apply.op, *a, *b)) {
      changed_ = true;
      return builder_.emit({loops::Constant{Scalar::from_integer(DType::Bool, *truth)}, DType::Bool, {}, {}});
    }
    const auto value = builder_.space().apply(apply.op, *a, *b);
    if (!value) return {};
    changed_ = true;
    return builder_.emit({loops::Index{loops::expand(*value)}, DType::I64, {}, {}});
  }

  const loops::Region& region_;
  loops::Region result_;
  loops::BodyBuilder builder_;
  loops::Renaming renaming_;
  bool changed_ = false;
};

// Positions, or constants that choose.
bool may_fold(const loops::Region& region) {
  return std::any_of(region.body.begin(), region.body.end(), [&](const Stmt& stmt) {
    const auto* apply = stmt.as<Apply>();
    return stmt.as<loops::Index>() || (apply && apply->op == ScalarOp::Where && region.body[apply->operands[0]].as<loops::Constant>());
  });
}

// A fold must not leave a reduction whose operand no longer varies over what it reduces.
bool is_valid(const loops::Region& region) {
  return std::all_of(region.body.begin(), region.body.end(), [&](const Stmt& stmt) {
    const auto state = row_state(stmt);
    return !state || state->over.subset_of(region.body[state->operand].vars);
  });
}

// Each variable of the store is one coordinate, up to a factor and a summand: no two points write one element.
bool is_injective(const loops::Region& region, const Stmt& stmt, const loops::Store& store) {
  loops::VarSet seen;
  for (sym::Expr coord : store.coords) {
    const loops::VarSet vars = vars_of(region, coord);
    if (vars.empty()) continue;
    if (vars.count() != 1 || !(vars & seen).empty()) return false;
    seen |= vars;
    for (size_t v = 0; v < region.vars.size(); ++v) {
      sym::Expr coefficient, rest;
      if (!vars.contains(loops::VarId(v))) continue;
      if (!sym::split_linear(coord, region.symbol(loops::VarId(v)), &coefficient, &rest)) return false;
      if (!coefficient.is_constant() || coefficient.constant() == 0 || !vars_of(region, rest).empty()) return false;
    }
  }
  return seen == stmt.vars;
}

// Scatters whose indices turned out to be positions.
bool separate_points(loops::Region& region) {
  bool changed = false;
  for (Stmt& stmt : region.body) {
    auto* store = stmt.as<loops::Store>();
    if (!store || !store->conflict_order || !is_injective(region, stmt, *store)) continue;
    store->conflict_order.reset();
    changed = true;
  }
  return changed;
}

}  // namespace

bool fold_indices(loops::Program& program, const Options&) {
  bool changed = false;
  for (loops::Step& step : program.steps) {
    auto* region = std::get_if<loops::Region>(&step);
    if (!region) continue;
    changed = separate_points(*region) || changed;
    if (!may_fold(*region)) continue;
    IndexFolder folder(*region, program.assumptions);
    if (!folder.run()) continue;
    loops::Region folded = folder.take();
    if (!is_valid(folded)) continue;
    loops::remove_dead_statements(folded);
    *region = std::move(folded);
    separate_points(*region);
    changed = true;
  }
  return changed;
}

}  // namespace cxxinductor::passes
