#include "driver/summary.h"

#include <algorithm>
#include <set>

#include "ir/plan/memory.h"
#include "ir/text_parts.h"
#include "sym/integer.h"
#include "sym/simplify.h"

namespace cxxinductor::driver {
namespace {

std::vector<Origin> calls_of(const plan::Plan& plan, const plan::Kernel& kernel) {
  std::vector<Origin> calls;
  std::set<OriginId> seen;
  for (const loops::Stmt& stmt : kernel.region.body)
    if (stmt.origin.valid() && plan.origins.contains(stmt.origin) && seen.insert(stmt.origin).second) calls.push_back(plan.origins[stmt.origin]);
  return calls;
}

std::vector<KernelSummary> summarize_kernels(const plan::Plan& plan, bool eager_numerics) {
  std::map<plan::KernelId, KernelSummary> launched;
  std::map<plan::KernelId, std::set<std::string>> arguments;  // that launches give for the kernel's symbols
  std::set<std::pair<plan::KernelId, plan::KernelId>> specialized;
  for (const plan::Step& step : plan.steps) {
    const auto run = plan::launches_of(step);
    if (run.empty()) continue;
    const plan::KernelId id = run[0].kernel;
    KernelSummary& kernel = launched[id];
    kernel.launches += sym::ceil_quotient(static_cast<int64_t>(run.size()), plan.kernels[id].max_grouped);
    for (const plan::Launch& launch : run) arguments[id].insert(print_expr_list(launch.symbol_args));
    for (const plan::Specialization& special : run[0].specializations)
      if (specialized.emplace(id, special.kernel).second) kernel.specializations.emplace_back(plan.kernels[special.kernel].name, print_where(special.when));
  }
  std::vector<KernelSummary> kernels;
  for (auto& [id, summary] : launched) {
    const plan::Kernel& kernel = plan.kernels[id];
    summary.name = kernel.name;
    summary.device = kernel.device;
    summary.bytes_read = kernel.bytes_read_hint;
    summary.bytes_written = kernel.bytes_written_hint;
    summary.numerics = numerics_guarantee_of(kernel, plan.origins, eager_numerics);
    summary.calls = calls_of(plan, kernel);
    summary.sizes = arguments[id].size();
    kernels.push_back(std::move(summary));
  }
  return kernels;
}

std::vector<MemorySummary> summarize_memory(const plan::Plan& plan) {
  std::vector<MemorySummary> all;
  for (Device device : plan.devices) {
    const plan::MemoryProfile profile = plan::profile_memory(plan, device);
    const auto eager = plan.eager_peaks.find(device);
    all.push_back({device, profile.peak, profile.lower_bound, eager == plan.eager_peaks.end() ? std::nullopt : std::optional(eager->second)});
  }
  return all;
}

std::map<std::string, int64_t> size_hints(const plan::Plan& plan) {
  std::map<std::string, int64_t> hints;
  for (const plan::Buffer& buffer : plan.buffers)
    for (sym::Expr size : buffer.sizes)
      for (sym::Expr symbol : size.free_symbols()) hints.try_emplace(std::string(symbol.name()), sym::estimate(symbol, plan.assumptions));
  return hints;
}

}  // namespace

GraphSummary summarize(const plan::Plan& plan, const Report& report) {
  GraphSummary graph;
  graph.kernels = summarize_kernels(plan, report.eager_numerics);
  graph.externs = report.externs;
  graph.extern_reasons = report.extern_reasons;
  graph.collectives = report.collectives;
  graph.missed_fusions = plan.missed_fusions;
  graph.memory = summarize_memory(plan);
  graph.size_hints = size_hints(plan);
  graph.allocations = static_cast<int64_t>(plan.arenas.size());
  for (const plan::Step& step : plan.steps) graph.allocations += std::holds_alternative<plan::Allocate>(step);
  graph.times = report.times;
  graph.pass_times = report.pass_times;
  graph.text_passes = report.text_passes;
  return graph;
}

std::vector<StageTotal> stage_totals(const GraphSummary& graph, std::span<const StageTime> before) {
  std::vector<StageTotal> totals;
  for (const std::span<const StageTime> part : {before, std::span<const StageTime>(graph.times)})
    for (const StageTime& time : part) {
      auto found = std::ranges::find(totals, time.stage, &StageTotal::stage);
      if (found == totals.end()) found = totals.insert(found, {time.stage});
      found->seconds += time.seconds;
      ++found->runs;
    }
  return totals;
}

ConstSummary summarize_once(const plan::Plan& plan, const Report& report, int64_t kept_bytes) {
  return {summarize_kernels(plan, report.eager_numerics), report.externs, plan.outputs.size(), kept_bytes};
}

}  // namespace cxxinductor::driver
