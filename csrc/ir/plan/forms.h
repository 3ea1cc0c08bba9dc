// How kernels execute some statements: in a cheaper form with the same value, or in blocks. Which they are follows from the plan alone.
#pragma once

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

// Does it divide elements of a row by a value of the row? What a division derives from the divisor is then computed once per row.
bool shares_divisor(const Kernel& kernel, StmtId id);

// Is it a sum of floats, or another reduction whose rounding depends on the order? Long ones are computed in blocks (Kernel::in_blocks).
bool rounds_by_order(const loops::Region& region, StmtId id);

// Is it a random word of each lane, where every fourth lane has a position that is a multiple of four? One Philox call then gives four words.
// Groups are of `width` along vector_var: the mapping's, or those of a matmul's factor.
bool philox_vec4(const Kernel& kernel, StmtId id, VarId vector_var, int width);

}  // namespace cxxinductor::plan
