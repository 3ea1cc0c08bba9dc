// Masks that are the same in all lanes of a vector where a loop is cut at the right places: comparisons of positions.
//
// `i < 1024` over i in [0, 2048), as concatenations, pads and triangles make it, changes once. A loop that is cut there runs
// two stretches in which the mask is one bool: loads under it are whole vectors or none, and choices are not made lane by lane.
#pragma once

#include <set>
#include <vector>

#include "ir/plan/plan.h"

namespace cxxinductor::codegen {

struct UniformMasks {
  std::set<plan::StmtId> stmts;  // bool statements that do not change along the variable between two cuts
  std::vector<sym::Expr> cuts;   // positions of the variable, each once; those outside its range cut nothing
};

// Of the statements of one loop over `variable`; none where the loop would be cut too often to pay.
UniformMasks find_uniform_masks(const plan::Kernel& kernel, const std::vector<plan::StmtId>& stmts, plan::VarId variable);

}  // namespace cxxinductor::codegen
