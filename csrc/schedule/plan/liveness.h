// Live ranges of buffers, aliases included: of a program's, for decisions on its order, and of a plan's, for its memory.
#pragma once

#include <vector>

#include "ir/live_ranges.h"
#include "ir/loops/loops.h"
#include "ir/plan/plan.h"
#include "schedule/plan/buffer_slices.h"

namespace cxxinductor::schedule {

struct BufferLiveness {
  int first = -1;               // time of the first access; -1: never accessed by a step
  int last = -1;                // time of the last access, through whatever aliases the buffer too
  bool used = false;            // accessed, an input or an output
  bool is_output = false;       // returned, itself or as a view
  bool aliased_output = false;  // something that may share its memory is returned
  bool is_alias = false;        // its memory is another buffer's
  bool has_alias = false;       // another buffer may share its memory
  bool extern_owned = false;    // made by an extern call that allocates
  bool escapes = false;         // an opaque call reads it or an alias of it, and may hold its memory from then on
};

// times: when each step of the program runs. Steps with the same time run at once. A buffer is alive from the
// first to the last use of its slices too; these are aliases of it.
IdVector<loops::BufferId, BufferLiveness> infer_liveness(const loops::Program& program, const std::vector<int>& times, const BufferSlices& slices);

// Whether a step computes: the others allocate, free and hand on memory.
bool computes(const plan::Step& step);
// Times are positions among the steps that compute; Allocate, Free and Reuse do not count as uses.
IdVector<plan::BufferId, BufferLiveness> infer_liveness(const plan::Plan& plan);

// Bytes of a buffer with its strides, at size hints.
int64_t bytes_of(const loops::Program& program, loops::BufferId id);
// Peaks of what a call allocates and of donated inputs; `end`: the time after the last.
DevicePeaks find_peaks(const loops::Program& program, const IdVector<loops::BufferId, BufferLiveness>& liveness, int end);

}  // namespace cxxinductor::schedule
