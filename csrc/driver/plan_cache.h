// Plans in the cache on disk, beside the kernels' machine code: a graph that was planned before is read back in place of being fused and
// planned again.
//
// An entry is found by the text of all that a plan follows from, and holds it, so that no other text with its hash is taken for it. As all
// of that folder it is trusted: the plan is verified, but not for memory safety.
#pragma once

#include <cxxinductor/options.h>

#include <optional>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "passes/graph/split_const_graph.h"
#include "support/interrupt.h"

namespace cxxinductor::runtime {
class DiskCache;
class EntryLock;
}  // namespace cxxinductor::runtime

namespace cxxinductor::driver {

struct Request;

// What the middle of the pipeline makes of a graph.
struct StoredPlan {
  plan::Plan plan;
  std::optional<passes::ConstGraph> const_graph;  // what is computed once; the plan takes its results as inputs
};

// Of the options that plans follow from: where a cache lies, what is printed and how long compilers may run is not among them, so that hosts
// and folders may differ in those.
std::string options_key(Options options);
// Of a request before its graph passes, with eager's peaks. The library's build is the disk cache's to tell apart.
std::string plan_key(const Request& request);
// None where there is no such entry, or it does not read back; then with the lock of it, where another process does not take longer than the
// cache's patience to make it.
std::optional<StoredPlan> read_plan(runtime::DiskCache& cache, const std::string& key, runtime::EntryLock& lock, const InterruptCheck& interrupted);
void write_plan(runtime::DiskCache& cache, const std::string& key, const plan::Plan& plan, const std::optional<passes::ConstGraph>& const_graph);

}  // namespace cxxinductor::driver
