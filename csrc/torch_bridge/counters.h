// What happened so far in the process: a user asks that, whoever compiled it.
#pragma once

#include <atomic>
#include <cstdint>

namespace cxxinductor::torch_bridge {

// For those who count. CUDA graphs count for themselves (runtime/graphs/graph_cache.h).
struct AtomicCounters {
  std::atomic<int64_t> graphs{0}, kernels{0}, externs{0}, aten_fallbacks{0}, eager_fallbacks{0}, checked_launches{0};
  std::atomic<int64_t> background_compiles{0}, background_calls{0}, copied_results{0};
};
AtomicCounters& counters();

// Since the process started or reset_counters(); see cxxinductor.counters in Python.
struct Counters {
  int64_t graphs = 0, kernels = 0, externs = 0, aten_fallbacks = 0, eager_fallbacks = 0, checked_launches = 0;
  int64_t background_compiles = 0, background_calls = 0;
  int64_t copied_results = 0;                // of library calls whose backend could not write into the plan's memory
  int64_t cache_hits = 0, cache_writes = 0;  // of entries on disk
  // Of CUDA graphs: stretches recorded, replays, nodes that the host patched for replays, stretches that cannot be recorded.
  int64_t graph_recordings = 0, graph_replays = 0, graph_patched_nodes = 0, graph_refusals = 0;
};
Counters read_counters();
void reset_counters();
void count_eager();
void count_background_compile();
void count_background_call();

}  // namespace cxxinductor::torch_bridge
