// Buffers that lie in others. What a concatenation joins is written where the result has it: an operand that a
// reduction, a call or anything else makes which does not fuse with the choice among operands becomes a part of the
// result, and the region that copied it there makes only the rest, as parts too, or is gone.
//
// Decided on the loops IR, in its final order: what steps do stays as it is, only strides and the one region change. So
// an equal kernel for each operand stays one kernel, launched at other addresses.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "ir/loops/loops.h"
#include "ir/plan/plan.h"
#include "ir/target.h"

namespace cxxinductor::schedule {

struct BufferSlice {
  loops::BufferId base;
  sym::Expr offset;  // in elements, from the first of the base
};
using BufferSlices = std::map<loops::BufferId, BufferSlice>;

// The buffer whose memory it is: itself, or what it is a part of in the end.
loops::BufferId root_of(const BufferSlices& slices, loops::BufferId id);
// Whether it is a part of one of these, or of a part of one.
bool is_inside(const BufferSlices& slices, loops::BufferId id, const std::set<loops::BufferId>& bases);

// Where that moves fewer bytes and never holds more at once. Changes strides of temporaries and regions of the program,
// whose steps stay in their order. Refusals name who makes an operand, the region that copies it, and why it has to.
BufferSlices alias_concat_operands(loops::Program& program, const Targets& targets, std::vector<plan::MissedFusion>& missed_fusions);

}  // namespace cxxinductor::schedule
