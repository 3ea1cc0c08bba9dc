#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "driver/summary.h"

namespace cxxinductor::driver {
namespace {

constexpr size_t most_calls = 8;   // named of one kernel
constexpr size_t most_pairs = 12;  // of kernels that were not fused, named
constexpr size_t most_passes = 3;  // named beside the stages

using Lines = std::vector<std::string>;

std::string megabytes(int64_t bytes) {
  return bytes >= 10'000 ? fmt::format("{:.2f} MB", static_cast<double>(bytes) / 1e6) : fmt::format("{} bytes", bytes);
}

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
    lines.push_back(fmt::format("  peak memory{} of what a call allocates: {}{}, at least {} (values alive at once)", where,
                                megabytes(device.peak), eager, megabytes(device.lower_bound)));
  }
}

std::string call_text(const Origin& origin) {
  std::string place = origin.file.empty() ? "" : fmt::format("{}:{}", origin.file, origin.line);
  if (!origin.module.empty()) place += (place.empty() ? "" : ", ") + origin.module;
  return place.empty() ? origin.call : fmt::format("{} ({})", origin.call, place);
}

void describe_kernel(const KernelSummary& kernel, bool names_device, Lines& lines) {
  lines.push_back(fmt::format("  {}{}: {} launches, each reads {}, writes {}; {}", kernel.name,
                              names_device ? fmt::format(" on {}", to_string(kernel.device)) : "", kernel.launches,
                              megabytes(kernel.bytes_read), megabytes(kernel.bytes_written), to_string(kernel.numerics.accuracy)));
  Lines calls;
  for (const Origin& origin : kernel.calls) calls.push_back(call_text(origin));
  Lines named;
  for (const auto& [text, count] : counted(calls)) named.push_back(count > 1 ? fmt::format("{} x {}", text, count) : text);
  if (!named.empty()) {
    const size_t more = named.size() - std::min(named.size(), most_calls);
    named.resize(named.size() - more);
    lines.push_back(fmt::format("    {} {}{}", kernel.calls.size() > 1 ? "fuses" : "for", fmt::join(named, ", "),
                                more > 0 ? fmt::format(" and {} more", more) : ""));
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
      lines.push_back(fmt::format("    {} -> {}{}, {}: {}", producer, consumer,
                                  pairs[i].times > 1 ? fmt::format(" x {}", pairs[i].times) : "", megabytes(pairs[i].bytes), reason));
  }
  if (pairs.size() > most_pairs) lines.push_back(fmt::format("    and {} more, {}", pairs.size() - most_pairs, megabytes(rest)));
}

std::string describe_constants(const ConstSummary& once) {
  const std::string made = fmt::format("{} launches and {} extern calls make {} tensors", launches(once.kernels), once.externs.size(), once.tensors);
  if (once.by_each_call)
    return fmt::format("  in each call, since PyTorch counts no writes to parameters made in inference mode: {}, which freezing would keep", made);
  return fmt::format("  once, and after writes to parameters: {}, {}, which are kept", made, megabytes(once.bytes));
}

std::string milliseconds(const std::vector<std::pair<std::string, double>>& times) {
  Lines parts;
  for (const auto& [name, seconds] : times) parts.push_back(fmt::format("{} {:.1f}", name, seconds * 1e3));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string describe_times(const GraphSummary& graph, std::span<const StageTime> before) {
  std::vector<std::pair<std::string, double>> stages, passes(graph.pass_times.begin(), graph.pass_times.end());
  double total = 0;
  for (const std::span<const StageTime> part : {before, std::span<const StageTime>(graph.times)})
    for (const StageTime& time : part) {
      stages.emplace_back(time.stage, time.seconds);
      total += time.seconds;
    }
  std::ranges::stable_sort(passes, std::greater(), &std::pair<std::string, double>::second);
  passes.resize(std::min(passes.size(), most_passes));
  const std::string text = fmt::format("{:.1f} ms: {}", total * 1e3, milliseconds(stages));
  return passes.empty() ? text : fmt::format("{}; slowest passes {}", text, milliseconds(passes));
}

std::string describe(const GraphSummary& graph, const std::optional<ConstSummary>& once, std::string_view title,
                     std::span<const StageTime> before) {
  Lines lines{fmt::format("{}: {} kernels, {} launches and {} extern calls per call; own kernels read {} and write {}", title,
                          graph.kernels.size(), launches(graph.kernels), graph.externs.size(),
                          megabytes(traffic(graph.kernels, &KernelSummary::bytes_read)),
                          megabytes(traffic(graph.kernels, &KernelSummary::bytes_written)))};
  describe_memory(graph.memory, lines);
  if (once) lines.push_back(describe_constants(*once));
  const bool mixed = std::ranges::any_of(graph.kernels, [&](const KernelSummary& kernel) { return kernel.device != graph.kernels[0].device; });
  for (const KernelSummary& kernel : graph.kernels) describe_kernel(kernel, mixed, lines);
  describe_externs(graph, lines);
  describe_missed_fusions(graph.missed_fusions, lines);
  lines.push_back(fmt::format("  time: {}", describe_times(graph, before)));
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace cxxinductor::driver
