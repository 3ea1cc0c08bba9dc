// What a statement does, whatever its kind: each kind states it once in stmt_traits.h. Whoever needs only such a property asks here and does not name
// kinds, so that a new kind is treated as what it states to be. Operands and equality: operands() of loops.h, stmt_traits.h.
#pragma once

#include <optional>

#include "ir/loops/loops.h"

namespace cxxinductor::loops {

// It acts and has no value, as Store and Check do: nothing reads it, it is never dead and never merged with an equal one.
bool is_effect(const Stmt& stmt);

// The state of a row: it takes the operand's value at each point of `over`, in the order of Region::vars (row-major).
struct RowState {
  Reduction reduction = Reduction::Sum;
  StmtId operand;
  VarSet over;
};
// Of a statement that keeps one, as Reduce does: it reads its operand at other points than its own.
std::optional<RowState> row_state(const Stmt& stmt);
// Replaces operand and variables of a statement that keeps a state.
void set_row(Stmt& stmt, StmtId operand, VarSet over);

// Its value is known when the last point of the row has updated the state, as that of Reduce: it does not vary over the row, and the row loop
// that computes it cannot read it.
bool is_known_after_row(const Stmt& stmt);

// Its value is that of a state, as of Reduce, or one result of a state, as of Project.
bool is_of_state(const Stmt& stmt);

// Exactly one row loop executes it: an effect, or updates of a state. Other statements may be computed again where their value is needed.
bool is_executed_once(const Stmt& stmt);

// The order of the row's points counts: the state takes positions, or its value is known before the row ends.
bool depends_on_row_order(const Stmt& stmt);

// The variables that a statement varies over, given those of all statements and expressions that it reads.
VarSet own_vars(const Stmt& stmt, VarSet read);

// It holds expressions, such as the coordinates of an access.
bool holds_expressions(const Stmt& stmt);

// All states of the region are read after their rows only: the points of a row may be dealt out to threads, and rows to pieces.
bool only_reduces(const Region& region);

}  // namespace cxxinductor::loops
