// Finds masks that are uniform over the lanes of a vector once a loop is cut: comparisons of positions.
//
// `i < 1024` over i in [0, 2048), as in concatenations, pads and triangles, changes once. A loop that is cut there has two
// ranges in which the mask is one bool: loads under it are whole vectors or none, and selects need no lanes.
#pragma once

#include <set>
#include <vector>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

struct UniformMasks {
  std::set<StmtId> stmts;       // bool statements that do not change along the variable between two cuts
  std::vector<sym::Expr> cuts;  // positions of the variable, each once; those outside its range cut nothing
};

// Of the statements of one loop over `variable`; none where the loop would be cut too often to pay.
UniformMasks find_uniform_masks(const Kernel& kernel, const std::vector<StmtId>& stmts, VarId variable);

}  // namespace cxxinductor::plan
