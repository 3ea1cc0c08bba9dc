// What all launches of a kernel on a GPU have in common.
#pragma once

#include <cstdint>

namespace cxxinductor::plan {

struct Kernel;

struct LaunchShape {
  int block_x = 1, block_y = 1;  // threads of a block
  int64_t dynamic_shared_bytes = 0;
  int cluster = 1;           // blocks in x that run at once and reach one another's shared memory; 1: no clusters
  bool cooperative = false;  // all blocks run at once, and may wait for one another
  // The blocks may start before the kernel ahead of them in the stream has ended. The kernel itself waits for what it reads
  // (griddepcontrol.wait: programmatic dependent launch).
  bool overlaps_previous = false;
};

LaunchShape launch_shape(const Kernel& kernel);

}  // namespace cxxinductor::plan
