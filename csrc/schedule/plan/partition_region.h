// Restricts a region to a part of one variable's range and resolves the selects that are decided there.
#pragma once

#include <vector>

#include "ir/loops/loops.h"
#include "sym/simplify.h"

namespace cxxinductor::schedule {

// Positions at which comparisons of `var` with fixed numbers change, from 0 to the variable's extent, ascending,
// as far as their order is known for all sizes.
std::vector<sym::Expr> find_boundaries(const loops::Region& region, loops::VarId var, const sym::Assumptions& assumptions);

// The region for begin <= var < begin + extent, the variable counted from 0 (absent where the extent is 1). The region is
// pointwise with one store, which is not masked.
loops::Region partition_region(const loops::Region& region, loops::VarId var, sym::Expr begin, sym::Expr extent, const sym::Assumptions& assumptions);

}  // namespace cxxinductor::schedule
