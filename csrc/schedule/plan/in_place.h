// Results that take the memory of something that dies where they are made.
//
// Decided on finished kernels: logical shapes of a result and of what it replaces may differ, but the element offsets of the
// kernel say which thread reads what it overwrites.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "schedule/plan/kernel.h"
#include "schedule/plan/liveness.h"

namespace cxxinductor::schedule {

// Whether parameter `written` may be the very memory of parameter `read`: each element is read only at the point that writes
// it, before it is written, and no element is written twice.
bool may_share(const plan::Kernel& kernel, size_t read, size_t written);

// One parameter for both, at the place of `read`; the argument is that of `written`.
void merge_parameters(MappedKernel& mapped, size_t read, size_t written);

struct BufferReuse {
  size_t step = 0;
  loops::BufferId from, to;
};
// mapped: by step, nothing for externs; the kernels' parameters are merged. Temporaries and results of externs that die are
// always written in place, inputs that the caller gave up only where the peak needs it: their memory may turn out to be held
// by somebody else. Nothing is written in place of a buffer while the kernel reads parts of it.
std::vector<BufferReuse> share_memory(const loops::Program& program, const BufferSlices& slices,
                                   const IdVector<loops::BufferId, BufferLiveness>& liveness,
                                   std::vector<std::optional<MappedKernel>>& mapped);

}  // namespace cxxinductor::schedule
