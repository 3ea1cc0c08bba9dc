// Kinds of accesses along the vector variable, and vector widths.
#pragma once

#include "ir/plan/plan.h"
#include "ir/target.h"
#include "kernels/region/flat_region.h"

namespace cxxinductor::kernels {

// Kind of a Load or Store along v in groups of `width`. aligned_only: wide accesses need a multiple of width in every
// other term of the offset.
plan::AccessKind classify_access(const FlatRegion& flat, const loops::Stmt& stmt, loops::VarId v, int width, bool aligned_only);

// The variable along which neighbouring elements of memory are accessed; invalid when there is none.
loops::VarId contiguous_variable(const FlatRegion& flat, const loops::Stmt& stmt);

// Whether a load can be read through a tile over c and tile_var; memory is read along tile_var.
bool is_staged(const FlatRegion& flat, const loops::Stmt& stmt, loops::VarId c, loops::VarId tile_var);
// Is it, and contiguous along tile_var rather than c?
bool is_tiled(const FlatRegion& flat, const loops::Stmt& stmt, loops::VarId c, loops::VarId tile_var);

// Largest width for which stores stay wide (or scalar for the whole group) and most bytes of contiguous loads are wide.
int choose_vector_width(const FlatRegion& flat, loops::VarId v, const Target& target);

// The variable along which loads of a region without reductions are contiguous, where it is not the stores' (the last one of
// space) and both are long enough to pay for tiles.
loops::VarId transposed_variable(const FlatRegion& flat);

// Sets the offset and kind of one access of a kernel mapped already, and that its parameter must be aligned.
void describe_access(plan::Kernel& kernel, const loops::Access& access, plan::AccessKind kind, int width, const Target& target);
// All accesses of a kernel in groups along its vector variable.
void describe_plain_accesses(plan::Kernel& kernel, const FlatRegion& flat, const Target& target);

}  // namespace cxxinductor::kernels
