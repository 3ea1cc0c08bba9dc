// Aliases concat operands to slices of the result, which removes the copy. Candidates are operands whose producer does not fuse
// into the select region, such as a reduction or a call. The region that copied them is restricted to the uncovered ranges,
// which become slices too; if none remain, it is removed.
//
// Decided on the loops IR, in its final order. Only strides and the select region change: steps stay as they are, so equal
// kernels of several operands stay one kernel, launched with other addresses.
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

// The buffer that owns the memory: itself, or the outermost base.
loops::BufferId root_of(const BufferSlices& slices, loops::BufferId id);
// Whether it is a slice of one of these, directly or through other slices.
bool is_inside(const BufferSlices& slices, loops::BufferId id, const std::set<loops::BufferId>& bases);

// Applied where it moves fewer bytes and does not raise the peak. Changes strides of temporaries and regions of the program;
// the order of steps stays. missed_fusions: producer of the operand, region that copies it, reason.
BufferSlices alias_concat_operands(loops::Program& program, const Targets& targets, std::vector<plan::MissedFusion>& missed_fusions);

}  // namespace cxxinductor::schedule
