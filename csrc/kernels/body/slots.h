// The slots of a kernel: what the loops of its mapping leave to the bodies of its segments. They follow from the plan alone.
#pragma once

#include "kernels/body/body.h"

namespace cxxinductor::kernels {

// Of a segment.
Slot segment_slot(const plan::Kernel& kernel, size_t segment);
// Of a segment around which the family's text computes `group`, a value of the segment, and leaves it in groups of the vector variable (a product's
// sums, for its epilogue). Such text makes no loads of its own.
Slot segment_slot_of_groups(const plan::Kernel& kernel, size_t segment, StmtId group);
// Of the statements that a value needs, for `width` elements along a variable of which some may not exist: the value is left in Lanes.
Slot value_slot(const plan::Kernel& kernel, StmtId value, VarId along, int width);

bool has_checks(const plan::Kernel& kernel);
// Reductions of the statements, in their order: those over the serial variable live longer than a segment and are left out.
std::vector<StmtId> reductions_of(const plan::Kernel& kernel, const std::vector<StmtId>& stmts);
// Those of them whose states are put aside now and then (Kernel::in_blocks).
std::vector<StmtId> summed_in_blocks(const plan::Kernel& kernel, const std::vector<StmtId>& reduces);

}  // namespace cxxinductor::kernels
