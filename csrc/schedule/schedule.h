// Loops -> plan. Decides which regions become one kernel, the order of steps, the mapping of each kernel and the memory of
// each buffer, in functions that driver/stages.cpp lists as stages.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/loops/loops.h"
#include "ir/plan/plan.h"
#include "ir/target.h"
#include "support/options.h"

namespace cxxinductor::schedule {

// Steps over which a fusion may extend the live ranges of more bytes than it saves; absent: any number.
using LiveRangeLimit = std::optional<size_t>;
// What option fusion_limit counts: merges of two regions, readers that compute what they loaded, and library calls and long reductions
// that became regions of their own.
struct FusionCount {
  size_t accepted = 0;
  std::string refused;  // the first one beyond the limit, by the names of regions in the result; empty: there was none
};
// Merges regions; the result is a program with fewer, larger regions. missed_fusions, where asked for: of each region of the
// result that reads what another stores, why they are apart.
// late_inputs: positions of inputs that the caller has later than the others (PipelineInputs, driver/stages.h); no region that does not need them is
// merged with one that does.
loops::Program fuse(loops::Program program, const Targets& targets, const Options& options, std::vector<plan::MissedFusion>* missed_fusions,
                    LiveRangeLimit limit = {}, const std::vector<uint32_t>& late_inputs = {}, FusionCount* count = nullptr);

struct SelectedKernels {
  plan::Plan plan;                                 // complete, but every buffer is allocated by itself, and none takes over the memory of another
  std::map<std::string, size_t> region_times;      // by name of a region: which of the steps that compute runs it
  std::vector<plan::MissedFusion> missed_fusions;  // by names of regions, those of concatenations that stay copies included
};
// Orders steps and maps each region to the target of its device; regions with equal kernels share one. Unsupported if a region is on a device
// without a target. missed_fusions: of fuse().
SelectedKernels select_kernels(loops::Program program, const Targets& targets, std::vector<plan::MissedFusion> missed_fusions = {});
// Places buffers: in arenas, by themselves, or on the memory of others that die. Of any plan without arenas and Reuse steps.
plan::Plan place_memory(plan::Plan plan);
// Makes one kernel of those that differ in sizes alone, where that pays (option generalize_kernels). Whether there were any.
bool merge_kernels(plan::Plan& plan, const Targets& targets, const Options& options);
// Names regions as the kernels that run them, for Plan::missed_fusions.
std::vector<plan::MissedFusion> name_kernels(std::vector<plan::MissedFusion> missed_fusions, const plan::Plan& plan,
                                             const std::map<std::string, size_t>& region_times);

}  // namespace cxxinductor::schedule
