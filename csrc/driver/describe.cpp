#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "driver/summary.h"

namespace cxxinductor::driver {
namespace {

constexpr size_t most_calls = 8;      // named of one kernel
constexpr size_t most_pairs = 12;     // of kernels that were not fused, named
constexpr size_t most_symbols = 8;    // of sizes, with their values
constexpr size_t most_passes = 3;     // named beside the stages
constexpr double least_share = 0.01;  // of the time, of a stage that has a line of its own

using Lines = std::vector<std::string>;

std::string megabytes(int64_t bytes) { return bytes >= 10'000 ? fmt::format("{:.2f} MB", static_cast<double>(bytes) / 1e6) : fmt::format("{} bytes", bytes); }

// Of equal items the first is at the first place, with their number.
template <class Item>
std::vector<std::pair<Item, size_t>> counted(const std::vector<Item>& items) {
  std::vector<std::pair<Item, size_t>> counts;
  for (const Item& item : items) {
    const auto found = std::ranges::find(counts, item, &std::pair<Item, size_t>::first);
    if (found == counts.end())
      counts.emplace_back(item, 1);
    else
      ++found->second;
  }
  return counts;
}

int64_t launches(const std::vector<KernelSummary>& kernels) {
  int64_t sum = 0;
  for (const KernelSummary& kernel : kernels) sum += kernel.launches;
  return sum;
}

int64_t traffic(const std::vector<KernelSummary>& kernels, int64_t KernelSummary::*bytes) {
  int64_t sum = 0;
  for (const KernelSummary& kernel : kernels) sum += kernel.*bytes * kernel.launches;
  return sum;
}

void describe_memory(const std::vector<MemorySummary>& memory, Lines& lines) {
  for (const MemorySummary& device : memory) {
    const std::string eager = device.eager_peak ? fmt::format(" (eager {})", megabytes(*device.eager_peak)) : "";
    const std::string where = memory.size() > 1 ? fmt::format(" on {}", to_string(device.device)) : "";
    lines.push_back(fmt::format("  peak memory{} of what a call allocates: {}{}, at least {} (values alive at once)", where, megabytes(device.peak), eager,
                                megabytes(device.lower_bound)));
  }
}

void describe_kernel(const KernelSummary& kernel, bool names_device, Lines& lines) {
  lines.push_back(fmt::format("  {}{}: {} launches, each reads {}, writes {}; {}", kernel.name,
                              names_device ? fmt::format(" on {}", to_string(kernel.device)) : "", kernel.launches, megabytes(kernel.bytes_read),
                              megabytes(kernel.bytes_written), to_string(kernel.numerics.accuracy)));
  Lines calls;
  for (const Origin& origin : kernel.calls) calls.push_back(describe(origin));
  Lines named;
  for (const auto& [text, count] : counted(calls)) named.push_back(count > 1 ? fmt::format("{} x {}", text, count) : text);
  if (!named.empty()) {
    const size_t more = named.size() - std::min(named.size(), most_calls);
    named.resize(named.size() - more);
    lines.push_back(
        fmt::format("    {} {}{}", kernel.calls.size() > 1 ? "fuses" : "for", fmt::join(named, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
  }
  if (kernel.sizes > 1) lines.push_back(fmt::format("    takes sizes as arguments: {} different ones", kernel.sizes));
  if (!kernel.specializations.empty())
    lines.push_back(fmt::format("    replaced by {} kernels for particular sizes once they are compiled", kernel.specializations.size()));
  for (const std::string& fact : kernel.numerics.details) lines.push_back("    " + fact);
}

void describe_externs(const GraphSummary& graph, Lines& lines) {
  std::vector<std::string> sorted = graph.externs;
  std::ranges::sort(sorted);
  Lines counts;
  for (const auto& [callee, count] : counted(sorted)) counts.push_back(fmt::format("{} x {}", count, callee));
  lines.push_back(fmt::format("  extern calls: {}", counts.empty() ? "none" : fmt::format("{}", fmt::join(counts, ", "))));
  std::vector<std::pair<std::string, Lines>> by_reason;
  for (const auto& [callee, reasons] : graph.extern_reasons)
    for (const std::string& reason : reasons) {
      auto found = std::ranges::find(by_reason, reason, &std::pair<std::string, Lines>::first);
      if (found == by_reason.end()) found = by_reason.insert(found, {reason, {}});
      found->second.push_back(callee);
    }
  for (const auto& [reason, callees] : by_reason) lines.push_back(fmt::format("    {}: {}", fmt::join(callees, ", "), reason));
  for (const std::string& note : graph.collectives) lines.push_back("    " + note);
}

// Pairs of kernels with the most bytes between them first. Launches of one kernel are one pair.
void describe_missed_fusions(const std::vector<plan::MissedFusion>& missed, Lines& lines) {
  if (missed.empty()) return;
  using Pair = std::tuple<std::string, std::string, std::string>;
  struct Between {
    Pair pair;
    int64_t bytes = 0;
    size_t times = 0;
  };
  std::vector<Between> pairs;
  int64_t total = 0;
  for (const plan::MissedFusion& one : missed) {
    const Pair pair{one.producer, one.consumer, one.reason};
    auto found = std::ranges::find(pairs, pair, &Between::pair);
    if (found == pairs.end()) found = pairs.insert(found, {pair});
    found->bytes += one.bytes;
    ++found->times;
    total += one.bytes;
  }
  std::ranges::stable_sort(pairs, std::greater(), &Between::bytes);
  lines.push_back(fmt::format("  not fused: {} pairs with {} between them", missed.size(), megabytes(total)));
  int64_t rest = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto& [producer, consumer, reason] = pairs[i].pair;
    if (i >= most_pairs)
      rest += pairs[i].bytes;
    else
      lines.push_back(fmt::format("    {} -> {}{}, {}: {}", producer, consumer, pairs[i].times > 1 ? fmt::format(" x {}", pairs[i].times) : "",
                                  megabytes(pairs[i].bytes), reason));
  }
  if (pairs.size() > most_pairs) lines.push_back(fmt::format("    and {} more, {}", pairs.size() - most_pairs, megabytes(rest)));
}

// Bytes of a graph that serves many sizes are those of one.
void describe_size_hints(const std::map<std::string, int64_t>& hints, Lines& lines) {
  if (hints.empty()) return;
  Lines values;
  for (const auto& [symbol, value] : hints) {
    if (values.size() == most_symbols) break;
    values.push_back(fmt::format("{} = {}", symbol, value));
  }
  lines.push_back(fmt::format("  bytes here are those of {}{}", fmt::join(values, ", "), hints.size() > values.size() ? " and other symbols" : ""));
}

std::string describe_constants(const ConstSummary& once) {
  const std::string made = fmt::format("{} launches and {} extern calls make {} tensors", launches(once.kernels), once.externs.size(), once.tensors);
  if (once.by_each_call)
    return fmt::format("  in each call, since PyTorch counts no writes to parameters made in inference mode: {}, which freezing would keep", made);
  return fmt::format("  once, and after writes to parameters: {}, {}, which are kept", made, megabytes(once.bytes));
}

std::string runs_text(const StageTotal& total) { return total.runs > 1 ? fmt::format(" ({} runs)", total.runs) : ""; }

double sum_of(const std::vector<StageTotal>& totals) {
  double sum = 0;
  for (const StageTotal& total : totals) sum += total.seconds;
  return sum;
}

// "; slowest passes b 0.3, a 0.1"; "" where no pass ran.
std::string slowest_passes(const GraphSummary& graph) {
  std::vector<std::pair<std::string, double>> passes(graph.pass_times.begin(), graph.pass_times.end());
  std::ranges::stable_sort(passes, std::greater(), &std::pair<std::string, double>::second);
  passes.resize(std::min(passes.size(), most_passes));
  Lines parts;
  for (const auto& [name, seconds] : passes) parts.push_back(fmt::format("{} {:.1f}", name, seconds * 1e3));
  return parts.empty() ? "" : fmt::format("; slowest passes {}", fmt::join(parts, ", "));
}

// A line per stage; those that took next to nothing are one, but for the first, which says where the graph came from.
void describe_stages(const GraphSummary& graph, std::span<const StageTime> before, Lines& lines) {
  const std::vector<StageTotal> totals = stage_totals(graph, before);
  const double sum = sum_of(totals);
  lines.push_back(fmt::format("  time: {:.1f} ms{}", sum * 1e3, slowest_passes(graph)));
  StageTotal others;
  for (const StageTotal& total : totals)
    if (total.seconds >= least_share * sum || &total == &totals.front()) {
      lines.push_back(fmt::format("    {:20} {:8.1f}{}", total.stage, total.seconds * 1e3, runs_text(total)));
    } else {
      others.seconds += total.seconds;
      ++others.runs;
    }
  if (others.runs > 0) lines.push_back(fmt::format("    {:20} {:8.1f}", fmt::format("{} others", others.runs), others.seconds * 1e3));
}

}  // namespace

std::string describe_times(const GraphSummary& graph, std::span<const StageTime> before) {
  const std::vector<StageTotal> totals = stage_totals(graph, before);
  Lines stages;
  for (const StageTotal& total : totals) stages.push_back(fmt::format("{} {:.1f}{}", total.stage, total.seconds * 1e3, runs_text(total)));
  return fmt::format("{:.1f} ms: {}{}", sum_of(totals) * 1e3, fmt::join(stages, ", "), slowest_passes(graph));
}

std::string describe(const GraphSummary& graph, const std::optional<ConstSummary>& once, std::string_view title, std::span<const StageTime> before) {
  Lines lines{fmt::format("{}: {} kernels, {} launches and {} extern calls per call; own kernels read {} and write {}", title, graph.kernels.size(),
                          launches(graph.kernels), graph.externs.size(), megabytes(traffic(graph.kernels, &KernelSummary::bytes_read)),
                          megabytes(traffic(graph.kernels, &KernelSummary::bytes_written)))};
  describe_memory(graph.memory, lines);
  describe_size_hints(graph.size_hints, lines);
  if (!graph.text_passes.empty()) lines.push_back(fmt::format("  registered passes: {}", fmt::join(graph.text_passes, ", ")));
  if (once) lines.push_back(describe_constants(*once));
  const bool mixed = std::ranges::any_of(graph.kernels, [&](const KernelSummary& kernel) { return kernel.device != graph.kernels[0].device; });
  for (const KernelSummary& kernel : graph.kernels) describe_kernel(kernel, mixed, lines);
  describe_externs(graph, lines);
  describe_missed_fusions(graph.missed_fusions, lines);
  describe_stages(graph, before, lines);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace cxxinductor::driver
