// Reuses the memory of buffers that die at a step for the results of that step.
//
// Decided on finished kernels: the shapes of the two buffers may differ, but the kernel's element offsets show whether a
// point reads only what it overwrites.
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

// One parameter for both, at the position of `read`; its argument is that of `written`.
void merge_parameters(MappedKernel& mapped, size_t read, size_t written);

struct BufferReuse {
  size_t step = 0;
  loops::BufferId from, to;
};
// mapped: by step, nothing for externs; the kernels' parameters are merged. Temporaries and results of externs that die are
// always reused, donated inputs only where the peak needs it: their memory may turn out to have another owner. A buffer is not
// reused while the kernel reads slices of it.
std::vector<BufferReuse> share_memory(const loops::Program& program, const BufferSlices& slices,
                                   const IdVector<loops::BufferId, BufferLiveness>& liveness,
                                   std::vector<std::optional<MappedKernel>>& mapped);

}  // namespace cxxinductor::schedule
