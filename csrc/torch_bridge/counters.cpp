#include "torch_bridge/counters.h"

#include "runtime/disk_cache.h"
#include "runtime/graphs/graph_cache.h"

namespace cxxinductor::torch_bridge {

AtomicCounters& counters() {
  static AtomicCounters instance;
  return instance;
}

Counters read_counters() {
  const AtomicCounters& c = counters();
  const runtime::GraphCounters& g = runtime::graph_counters();
  const runtime::CacheCounters& cache = runtime::cache_counters();
  return {c.graphs,         c.kernels,  c.externs,    c.aten_fallbacks, c.eager_fallbacks, c.checked_launches, c.background_compiles, c.background_calls,
          c.copied_results, cache.hits, cache.writes, g.recordings,     g.replays,         g.patched_nodes,    g.refused_stretches};
}

void reset_counters() {
  AtomicCounters& c = counters();
  c.graphs = c.kernels = c.externs = c.aten_fallbacks = c.eager_fallbacks = c.checked_launches = 0;
  c.background_compiles = c.background_calls = c.copied_results = 0;
  runtime::CacheCounters& cache = runtime::cache_counters();
  cache.hits = cache.writes = 0;
  runtime::GraphCounters& g = runtime::graph_counters();
  g.recordings = g.replays = g.patched_nodes = g.refused_stretches = 0;
}

void count_eager() { counters().eager_fallbacks += 1; }
void count_background_compile() { counters().background_compiles += 1; }
void count_background_call() { counters().background_calls += 1; }

}  // namespace cxxinductor::torch_bridge
