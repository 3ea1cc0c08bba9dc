#include "schedule/plan/grouped_launches.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "ir/live_ranges.h"
#include "ir/loops/symbols.h"
#include "schedule/fusion/dependencies.h"
#include "schedule/plan/liveness.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

constexpr size_t fewest_together = 4;          // below, a table costs about as much as the launches
constexpr int64_t most_early_bytes = 1 << 20;  // computed earlier than in program order, per group, where memory counts
constexpr size_t most_open = 16;               // groups of one key that still accept steps

// Memory that a step reads and writes.
struct StepAccesses {
  std::set<loops::BufferId> reads, writes;
};

StepAccesses accesses_of(const loops::Region& region) {
  StepAccesses found;
  for (const loops::Access& access : loops::accesses(region)) (access.store ? found.writes : found.reads).insert(access.buffer);
  return found;
}

StepAccesses accesses_of(const loops::ExternCall& call) {
  StepAccesses found;
  for (const auto& operand : call.operands)
    if (const auto* view = std::get_if<loops::View>(&operand)) found.reads.insert(view->buffer);
  for (uint32_t operand : call.mutated_operands)
    if (const auto* view = std::get_if<loops::View>(&call.operands[operand])) found.writes.insert(view->buffer);
  found.writes.insert(call.results.begin(), call.results.end());
  return found;
}

class Grouping {
 public:
  Grouping(const loops::Program& program, const std::vector<std::string>& keys, const BufferSlices& slices, int64_t most_bytes)
      : program_(program),
        slices_(slices),
        most_bytes_(most_bytes),
        memory_of_(program.buffers.size()),
        memories_(program.buffers.size()),
        definers_(loops::find_definers(program)) {
    for (size_t b = 0; b < program.buffers.size(); ++b) memory_of_[loops::BufferId(b)] = b;
    for (const loops::Step& step : program.steps)
      if (const auto* call = std::get_if<loops::ExternCall>(&step)) join_aliases(*call);
    for (size_t t = 0; t < program.steps.size(); ++t) place(t, keys[t]);
  }

  std::vector<std::vector<size_t>> take() { return std::move(groups_); }

 private:
  // Last uses of a memory: writers run after all of them, readers after the last write.
  struct Memory {
    int read = -1, written = -1;
  };

  // Buffers that may share memory through an extern's result are one memory.
  void join_aliases(const loops::ExternCall& call) {
    for (size_t r = 0; r < call.results.size() && r < call.alias_of.size(); ++r) {
      if (call.alias_of[r] < 0) continue;
      const auto* base = std::get_if<loops::View>(&call.operands[static_cast<size_t>(call.alias_of[r])]);
      if (!base) continue;
      const size_t from = memory_of_[call.results[r]], to = memory_of_[base->buffer];
      if (from == to) continue;
      for (size_t& memory : memory_of_)
        if (memory == from) memory = to;
    }
  }

  Memory& memory(loops::BufferId buffer) { return memories_[memory_of_[buffer]]; }

  void place(size_t step, const std::string& key) {
    StepAccesses accesses = std::visit([](const auto& kind) { return accesses_of(kind); }, program_.steps[step]);
    add_slices(accesses.reads);
    add_slices(accesses.writes);
    int earliest = 0;
    for (loops::BufferId buffer : accesses.reads) earliest = std::max(earliest, memory(buffer).written + 1);
    for (loops::BufferId buffer : accesses.writes) earliest = std::max({earliest, memory(buffer).written + 1, memory(buffer).read + 1});
    for (const std::string& symbol : needed_symbols(step, accesses.writes))
      if (const auto known = defined_.find(symbol); known != defined_.end()) earliest = std::max(earliest, known->second + 1);
    const bool raises = may_raise(program_.steps[step]), writes = writes_input(program_, program_.steps[step]);
    if (raises) earliest = std::max(earliest, input_written_ + 1);
    if (writes) earliest = std::max(earliest, raised_ + 1);
    const int time = key.empty() ? append(step) : join(step, key, earliest, early_bytes(accesses));
    if (raises) raised_ = std::max(raised_, time);
    if (writes) input_written_ = std::max(input_written_, time);
    for (loops::BufferId buffer : accesses.reads) memory(buffer).read = std::max(memory(buffer).read, time);
    for (loops::BufferId buffer : accesses.writes) memory(buffer).written = std::max(memory(buffer).written, time);
    note_definitions(step, time);
  }

  // Assertions count as definitions of what they are about: what uses the symbols later may rely on them.
  void note_definitions(size_t step, int time) {
    const auto* call = std::get_if<loops::ExternCall>(&program_.steps[step]);
    if (!call) return;
    for (const Definition& definition : call->defines) defined_[definition.symbol] = time;
    if (call->ordered && call->results.empty())
      for (const std::string& symbol : loops::used_symbols(program_, program_.steps[step], definers_)) defined_[symbol] = time;
  }

  // Those of the memory that parts lie in are needed to allocate it.
  std::set<std::string> needed_symbols(size_t step, const std::set<loops::BufferId>& writes) const {
    std::set<std::string> symbols = loops::used_symbols(program_, program_.steps[step], definers_);
    if (definers_.empty()) return symbols;
    for (loops::BufferId id : writes)
      for (sym::Expr size : program_.buffers[root_of(slices_, id)].sizes)
        for (sym::Expr symbol : size.free_symbols()) symbols.emplace(symbol.name());
    return symbols;
  }

  // A use of a buffer is a use of all its slices; a use of a slice is no use of the others.
  void add_slices(std::set<loops::BufferId>& buffers) const {
    for (const auto& [id, slice] : slices_)
      if (is_inside(slices_, id, buffers)) buffers.insert(id);
  }

  int append(size_t step) {
    groups_.push_back({step});
    return static_cast<int>(groups_.size() - 1);
  }

  int join(size_t step, const std::string& key, int earliest, int64_t bytes) {
    std::vector<Open>& open = open_[key];
    for (Open& group : open) {
      if (group.time < earliest || group.early_bytes + bytes > most_bytes_) continue;
      group.early_bytes += bytes;
      groups_[static_cast<size_t>(group.time)].push_back(step);
      return group.time;
    }
    const int time = append(step);
    if (open.size() == most_open) open.erase(open.begin());
    open.push_back({time, 0});
    return time;
  }

  // Of the buffers that first exist with this step.
  int64_t early_bytes(const StepAccesses& accesses) {
    int64_t bytes = 0;
    for (loops::BufferId id : accesses.writes) {
      if (program_.buffers[id].role != loops::Buffer::Role::Input && memory(id).written < 0) bytes += bytes_of(program_, id);
    }
    return bytes;
  }

  struct Open {
    int time;
    int64_t early_bytes;
  };

  const loops::Program& program_;
  const BufferSlices& slices_;
  int64_t most_bytes_;
  IdVector<loops::BufferId, size_t> memory_of_;
  std::vector<Memory> memories_;
  loops::Definers definers_;
  std::unordered_map<std::string, int> defined_;  // when a symbol is known
  int raised_ = -1, input_written_ = -1;          // when a step last might raise, and last wrote to an input
  std::vector<std::vector<size_t>> groups_;
  std::unordered_map<std::string, std::vector<Open>> open_;
};

// Equal for all regions that may have equal keys.
std::string outline(const loops::Region& region) {
  std::string text;
  for (const loops::Stmt& stmt : region.body) {
    text += static_cast<char>('a' + stmt.kind.index());
    text += static_cast<char>('a' + static_cast<int>(stmt.dtype));
    if (const auto* apply = stmt.as<loops::Apply>()) text += fmt::format("{}", static_cast<int>(apply->op));
  }
  return text;
}

std::vector<std::vector<size_t>> group_within(const loops::Program& program, const std::vector<std::string>& keys, const BufferSlices& slices,
                                              int64_t most_bytes) {
  std::vector<std::vector<size_t>> groups = Grouping(program, keys, slices, most_bytes).take();
  // Steps without a group stay at their position in the program.
  std::vector<std::string> worthwhile = keys;
  bool all = true;
  for (const std::vector<size_t>& group : groups) {
    if (group.size() >= fewest_together) continue;
    for (size_t step : group) {
      all = all && worthwhile[step].empty();
      worthwhile[step].clear();
    }
  }
  return all ? groups : Grouping(program, worthwhile, slices, most_bytes).take();
}

}  // namespace

std::vector<int> times_of(const loops::Program& program, const std::vector<std::vector<size_t>>& groups) {
  std::vector<int> times(program.steps.size());
  for (size_t time = 0; time < groups.size(); ++time)
    for (size_t step : groups[time]) times[step] = static_cast<int>(time);
  return times;
}

std::vector<bool> may_be_together(const loops::Program& program) {
  std::vector<std::string> outlines;
  std::unordered_map<std::string, size_t> counts;
  for (const loops::Step& step : program.steps) {
    const auto* region = std::get_if<loops::Region>(&step);
    outlines.push_back(region ? outline(*region) : "");
    ++counts[outlines.back()];
  }
  std::vector<bool> answers;
  for (const std::string& outline : outlines) answers.push_back(!outline.empty() && counts[outline] >= fewest_together);
  return answers;
}

std::vector<std::vector<size_t>> group_steps(const loops::Program& program, const std::vector<std::string>& keys, const BufferSlices& slices) {
  std::vector<std::vector<size_t>> groups = group_within(program, keys, slices, INT64_MAX);
  if (groups.size() == program.steps.size()) return groups;
  std::vector<std::vector<size_t>> alone;
  for (size_t t = 0; t < program.steps.size(); ++t) alone.push_back({t});
  const auto peaks = [&](const std::vector<std::vector<size_t>>& order) {
    const auto liveness = infer_liveness(program, times_of(program, order), slices);
    return find_peaks(program, liveness, static_cast<int>(order.size()));
  };
  if (!exceed(peaks(groups), peaks(alone))) return groups;
  return group_within(program, keys, slices, most_early_bytes);
}

}  // namespace cxxinductor::schedule
