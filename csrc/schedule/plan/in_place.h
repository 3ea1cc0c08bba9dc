// Reuses the memory of buffers that die at a step for the results of that step.
//
// Decided on finished kernels: the shapes of the two buffers may differ, but the kernel's element offsets show whether a
// point reads only what it overwrites.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "ir/plan/plan.h"
#include "schedule/plan/liveness.h"

namespace cxxinductor::schedule {

// Whether parameter `written` may be the very memory of parameter `read`: each element is read only at the point that writes
// it, before it is written, and no element is written twice.
bool may_share(const plan::Kernel& kernel, size_t read, size_t written);

// A launch with its kernels, some of whose parameters may be merged.
struct LaunchInPlace {
  plan::Launch launch;
  plan::Kernel kernel;
  std::vector<plan::Kernel> specializations;  // of launch.specializations
};

struct BufferReuse {
  size_t time = 0;  // of the launch, as infer_liveness counts
  plan::BufferId from, to;
};
struct SharedMemory {
  std::vector<BufferReuse> reuses;
  std::map<size_t, LaunchInPlace> launches;  // by time: those that reuse memory
};
// Of a plan without Reuse steps. Temporaries and results of externs that die are always reused, donated inputs only where the peak needs it:
// their memory may turn out to have another owner. A buffer is not reused while the kernel reads slices of it.
SharedMemory share_memory(const plan::Plan& plan, const IdVector<plan::BufferId, BufferLiveness>& liveness);

}  // namespace cxxinductor::schedule
