// What became of a graph, as data and in words: what explain() says, in Python and in C++.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/compile.h"
#include "driver/numerics_guarantee.h"
#include "ir/plan/plan.h"

namespace cxxinductor::driver {

struct KernelSummary {
  std::string name;
  Device device;
  int64_t launches = 0;                       // in a call
  int64_t bytes_read = 0, bytes_written = 0;  // of a launch, at size hints
  NumericsGuarantee numerics;
  std::vector<Origin> calls;                                         // of the model, in the order of first sight: what was fused into it
  size_t sizes = 0;                                                  // how many sets of sizes its launches give it as arguments
  std::vector<std::pair<std::string, std::string>> specializations;  // name, for which sizes
};

// Bytes at size hints.
struct MemorySummary {
  Device device;
  int64_t peak = 0;                   // held at most in a call, with inputs that the caller gave up
  int64_t lower_bound = 0;            // of values alive at once
  std::optional<int64_t> eager_peak;  // what the same calls hold one by one
};

struct GraphSummary {
  std::vector<KernelSummary> kernels;  // that the call launches
  std::vector<std::string> externs;    // the callee of each extern call
  frontend::CallReasons extern_reasons;
  std::vector<std::string> collectives;  // which were joined, which not and why
  std::vector<plan::MissedFusion> missed_fusions;
  std::vector<MemorySummary> memory;          // by device, the main one first
  std::map<std::string, int64_t> size_hints;  // the symbols in sizes, and the values with which bytes are counted
  int64_t allocations = 0;                    // requests to the allocator in a call, arenas included
  std::vector<StageTime> times;
  std::map<std::string, double> pass_times;
  std::vector<std::string> text_passes;  // of users
};

// What is computed once (option freezing), or by each call where PyTorch counts no writes to what it follows from.
struct ConstSummary {
  std::vector<KernelSummary> kernels;
  std::vector<std::string> externs;
  size_t tensors = 0;  // that are kept, or made by each call
  int64_t bytes = 0;   // of those that are kept
  bool by_each_call = false;
};

GraphSummary summarize(const plan::Plan& plan, const Report& report);
ConstSummary summarize_once(const plan::Plan& plan, const Report& report, int64_t kept_bytes);

// What a stage took in all its runs.
struct StageTotal {
  std::string stage;
  double seconds = 0;
  size_t runs = 0;
};
// In pipeline order: that in which stages ended first. before: stages that preceded the compile.
std::vector<StageTotal> stage_totals(const GraphSummary& graph, std::span<const StageTime> before = {});

// Lines of text; title: "forward graph". before: as of stage_totals.
std::string describe(const GraphSummary& graph, const std::optional<ConstSummary>& once, std::string_view title, std::span<const StageTime> before = {});
// "12.5 ms: lower 0.1, select-kernels 3.0 (2 runs), ...; slowest passes ..."
std::string describe_times(const GraphSummary& graph, std::span<const StageTime> before = {});

}  // namespace cxxinductor::driver
