// Rewriting regions: bodies rebuilt statement by statement under a renaming, with value numbering on the way.
// Shared by lowering (canonical spaces) and by fusion (one body substituted into another).
#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "ir/loops/index_algebra.h"
#include "ir/loops/loops.h"

namespace cxxinductor::loops {

// Names of an old body in a new one. Statements and variables without an entry must not be used.
struct Renaming {
  std::vector<StmtId> statements;  // old statement -> new one; invalid while not yet emitted
  ExprMap expressions;             // old variable or statement symbol -> expression of the new region
  std::vector<VarSet> vars;        // old variable -> the new ones that run through it (for Reduce::over)
};

// Of a body whose statements move into a region with the same variables.
Renaming identity_renaming(const Region& region);

// The value of a statement as an expression of sizes and positions, where it is one without data.
std::optional<sym::Expr> expression_of(const Stmt& stmt);

// Appends to a region whose variables are set. Equal statements are emitted once; `dtype` of a statement is kept, its
// `vars` are computed.
class BodyBuilder {
 public:
  BodyBuilder(Region& region, const sym::Assumptions& assumptions);
  Region& region() { return region_; }
  const Space& space() const { return space_; }
  StmtId emit(Stmt stmt);
  // Emits statement `old` of another body; operands must have been emitted. Records the result in the renaming.
  StmtId emit_renamed(const Region& from, StmtId old, Renaming& renaming);
  Stmt renamed(const Stmt& stmt, const Renaming& renaming) const;
  void bind(StmtId old, StmtId now, Renaming& renaming) const;
  // The operand, made to vary over all of `over` through conditions that always hold: a reduction counts every point, also
  // those along which a broadcast repeats its operand.
  StmtId spread(StmtId operand, VarSet over, OriginId origin);
  VarSet vars_of_expr(sym::Expr e) const;
  // expression_of a statement, which renamed expressions have in its place. None where it is checked: they name it, since the access depends on the check.
  std::optional<sym::Expr> position_of(StmtId now) const;

 private:
  sym::Expr with_positions(sym::Expr e) const;
  VarSet vars_of_stmt(const Stmt& stmt) const;

  Region& region_;
  Space space_;
  std::unordered_map<sym::Expr, VarId> var_of_symbol_;
  std::unordered_multimap<size_t, StmtId> numbering_;  // looked up, never iterated
  std::set<StmtId> checked_;
};

// The region with other variables; `values` gives each old variable as an expression of the new ones.
std::string fresh_variable_name(const IdVector<VarId, Var>& vars);
Region change_variables(const Region& region, const IdVector<VarId, Var>& vars, const ExprMap& values, const sym::Assumptions& assumptions);
void remove_dead_statements(Region& region);  // equal ones become one, too
// Variables of extent 1 become 0, but for one that a reduction needs to have something to reduce over.
void drop_unit_variables(Region& region, const sym::Assumptions& assumptions);
// Reductions whose operand lost variables (it became a constant along them, say) get it back over all variables of the
// region: one row space for all reductions is what fusion and plan are built on.
void spread_reductions(Region& region, const sym::Assumptions& assumptions);
// Where coordinates divide a variable by a factor of its extent, the variable is split in two, until no such division
// is left.
void split_variables(Region& region, const sym::Assumptions& assumptions);
// Splits one variable that e divides by a factor of its extent; false when there is none.
bool split_variable_for(Region& region, sym::Expr e, const sym::Assumptions& assumptions);
// i0, i1, ... in the order of the variables.
void number_variables(Region& region, const sym::Assumptions& assumptions);

}  // namespace cxxinductor::loops
