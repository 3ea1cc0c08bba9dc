// The recordings of one executable: for each kind of call (streams, sizes, alignments of inputs, kernels that are loaded) the stretches
// of the plan and a graph for each of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/executable.h"
#include "runtime/graphs/device_graph.h"
#include "runtime/graphs/stretches.h"
#include "runtime/host.h"
#include "support/fork_mutex.h"

namespace cxxinductor::runtime {

// A stretch of a kind of call, and its recording once there is one. The stretch stays as it is; all else is guarded by GraphSet::mutex.
struct RecordedStretch {
  Stretch stretch;
  std::shared_ptr<RecordingPlace> place;  // of the stretch's device and stream
  std::unique_ptr<DeviceGraph> graph;
  std::vector<uint32_t> steps;   // those with work
  std::vector<void*> addresses;  // of the ranges, when the graph was recorded
  // By range: it may be elsewhere in a replay. Of kernels of ours alone at once; with library calls, once a second recording, with the
  // range elsewhere, was the same work.
  std::vector<bool> may_move;
  // Results that library calls left in the host's memory, which nothing reads on the device.
  std::vector<std::pair<uint32_t, TensorRef>> constants;
  int unlike = 0;           // recordings that were not the same work as the one before
  int failures = 0;         // recordings that ended with an error
  bool is_refused = false;  // its steps run one by one
  // For reports: in some call its inputs shared memory when it was to be recorded, or its memory was aligned in another way.
  bool had_overlap = false, had_other_alignment = false;
};

struct GraphSet {
  std::vector<int64_t> key;
  // Guarded by the cache's mutex.
  int calls = 0;  // before the stretches were found
  bool has_stretches = false;
  ForkMutex mutex{[this] {
    for (RecordedStretch& recorded : stretches) recorded.is_refused = true;
  }};
  std::vector<RecordedStretch> stretches;
};

// What graphs did, of the process. For counters().
struct GraphCounters {
  std::atomic<int64_t> recordings{0}, replays{0}, patched_nodes{0}, refused_stretches{0};
};
GraphCounters& graph_counters();

class GraphCache {
 public:
  GraphCache(const plan::Plan& plan, const Tables& tables, GraphSettings settings)
      : plan_(plan),
        tables_(tables),
        calls_before_(settings.use == UseGraphs::AtOnce ? 0
                      : settings.use == UseGraphs::On   ? 2
                                                        : 8),
        branches_(settings.branches) {}
  bool branches() const { return branches_; }

  // The stretches of calls with this key, in order; null for the first ones, in which libraries choose their algorithms. The keys that were
  // used last are kept; the first number of a key never falls from call to call, and keys with a smaller one are dropped. values: the
  // workspace of the call. held_inputs: see find_stretches; asked when the stretches are to be found, without a lock.
  std::shared_ptr<GraphSet> find(std::span<const int64_t> key, std::span<const int64_t> values, const std::function<std::vector<bool>()>& held_inputs);
  // A library call could not be recorded, for this reason: no set that is made from now on records it, and those that exist are made anew.
  void refuse(const std::string& callee, const std::string& reason);
  // The same of steps.
  void refuse(const std::map<uint32_t, std::string>& steps);
  // A stretch was not recorded in some call, for reports.
  void note(const std::string& reason, const Stretch& stretch);

  // Reasons for what is not recorded, with the number of steps, for reports; those of the plan before the first call.
  std::vector<std::pair<std::string, int>> reasons() const;

 private:
  void divide_anew();
  void forget_in_child();

  const plan::Plan& plan_;
  const Tables& tables_;
  const int calls_before_;
  const bool branches_;
  mutable ForkMutex mutex_{[this] { forget_in_child(); }};
  std::vector<std::shared_ptr<GraphSet>> sets_;  // the last used first
  Refusals refused_;
  std::map<std::pair<std::string, uint32_t>, int> noted_;  // by reason and first step: steps with work
};

}  // namespace cxxinductor::runtime
