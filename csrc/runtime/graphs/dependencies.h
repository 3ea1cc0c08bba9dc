// Which steps of a recording wait for which: independent branches of a graph (the projections of attention, the branches of an Inception
// block) may run side by side.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/graphs/device_graph.h"

namespace cxxinductor::runtime {

// What a step reads and writes. Ranges without bytes are none.
struct Accesses {
  std::vector<MemoryRange> read, written;
};

Dependencies find_dependencies(std::span<const Accesses> steps);

// Seconds that the steps take one after the other, and where only dependencies order them. Each takes `latency` and the time of its memory
// traffic; what runs side by side shares the memory's bytes per second.
struct EstimatedTime {
  double in_order = 0, in_parallel = 0;
};
EstimatedTime estimate_time(std::span<const Accesses> steps, const Dependencies& dependencies, double bytes_per_second, double latency);

}  // namespace cxxinductor::runtime
