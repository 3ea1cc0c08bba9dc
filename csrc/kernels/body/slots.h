// The slots of a kernel: what the loops of its mapping leave to the bodies of its segments. They follow from the plan alone.
#pragma once

#include "kernels/body/body.h"

namespace cxxinductor::kernels {

// Of a segment. Of Matmul: of its second one, the epilogue, which runs for groups of the sums.
Slot segment_slot(const plan::Kernel& kernel, size_t segment);

// Elements of a matmul's factor that move together.
inline constexpr int factor_width = 8;
// Of a factor of a matmul that is computed: groups of it along a variable, left in Lanes.
Slot factor_slot(const plan::Kernel& kernel, StmtId value, VarId along);

bool has_checks(const plan::Kernel& kernel);
// Reductions of the statements, in their order: those over the serial variable live longer than a segment and are left out.
std::vector<StmtId> reductions_of(const plan::Kernel& kernel, const std::vector<StmtId>& stmts);
// Those of them whose states are put aside now and then (Kernel::in_blocks).
std::vector<StmtId> summed_in_blocks(const plan::Kernel& kernel, const std::vector<StmtId>& reduces);

}  // namespace cxxinductor::kernels
