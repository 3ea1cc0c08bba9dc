// A region in the form that mapping works on: accesses are element offsets, variables are split into space and row.
//
// Invariants: Loads and Stores have one coordinate, the offset from the buffer's base in elements. Every Reduce runs
// over exactly the variables of `row`, or over `serial` alone, and is then read by stores only. No statement is dead, no two
// pure statements are equal. `vars` of statements is tight: a variable is in it only if an offset, an index expression
// or an operand mentions it.
#pragma once

#include <optional>
#include <vector>

#include "ir/loops/loops.h"
#include "ir/target.h"

namespace cxxinductor::kernels {

struct KernelFamily;

struct FlatRegion {
  loops::Region region;                  // BufferIds are the program's
  std::vector<loops::VarId> space, row;  // outermost first
  loops::VarId serial;                   // if valid, a row is a point of space and serial
  sym::Assumptions program_assumptions;
  sym::Assumptions assumptions;                // program_assumptions and the variables' ranges
  const KernelFamily* arranged_for = nullptr;  // the family whose form the region has (kernels/family.h)

  loops::VarSet row_set() const;
  bool is_across(loops::StmtId id) const;              // a reduction over the serial variable
  bool is_finishing(loops::StmtId id) const;           // the store of one
  bool is_row_varying(const loops::Stmt& stmt) const;  // executed for each point of the row: a Reduce always is
  sym::Expr extent(loops::VarId v) const { return region.vars[v].extent; }
};

// Flattens accesses, drops dead and repeated statements and variables of extent 1.
// assumptions: what is known of the program's symbols, its own assumptions or more.
FlatRegion flatten(const loops::Program& program, const loops::Region& region, const sym::Assumptions& assumptions);

// Replaces the variables; `replacements` gives the old ones in terms of the new. Assumptions and `vars` follow.
void replace_variables(FlatRegion& flat, IdVector<loops::VarId, loops::Var> vars, std::vector<loops::VarId> space, std::vector<loops::VarId> row,
                       loops::VarId serial, const sym::Substitution& replacements);

// Orders space and row by memory order (of stores first, then of loads): the variable with the smallest stride last.
// Two orders stay: the row order of a reduction that counts positions and, on the CPU, the order of a store with write
// conflicts.
void order_variables(FlatRegion& flat, const Target& target);
bool has_write_conflicts(const FlatRegion& flat);  // in some store

// Makes one variable of two neighbours wherever every access allows it.
void merge_variables(FlatRegion& flat);

// On GPUs: makes one variable of the last two where only that lets narrow stores go out in whole vectors
// (rows of an odd length); loads then divide by the row's length. Not for regions that tiles suit: tiles read along the rows
// that flat stores would read across.
void flatten_stores(FlatRegion& flat, const Target& target);

// Gives variables their canonical order (space, row) and names.
void name_variables(FlatRegion& flat);

// The offset of a Load or Store.
sym::Expr offset_of(const loops::Stmt& stmt);
// e == coefficient * variable + rest, neither depending on the variable, through statement symbols either.
struct Linear {
  sym::Expr coefficient, rest;
};
std::optional<Linear> linear_in(const loops::Region& region, sym::Expr e, loops::VarId v);
// Product of the extents of vars, simplified.
sym::Expr points(const FlatRegion& flat, const std::vector<loops::VarId>& vars);
// Groups of `width` in all runs over vars, simplified.
sym::Expr group_count(const FlatRegion& flat, const std::vector<loops::VarId>& vars, int width);

}  // namespace cxxinductor::kernels
