#include "runtime/graphs/stretches.h"

#include <algorithm>

#include "ir/device_types.h"

namespace cxxinductor::runtime {
namespace {

constexpr int64_t deferred_share = 32;               // of the call's peak, at most one part in so many is freed late
constexpr int64_t deferred_at_least = int64_t{2} << 20;
constexpr int64_t scratch_alignment = 512;           // as torch's allocator aligns
constexpr int64_t most_scratch = int64_t{16} << 20;  // of a stretch: it stays taken between calls

// Memory of a call, by the number of its root.
class Memory {
 public:
  Memory(const Tables& tables, std::span<const int64_t> values)
      : tables_(tables), values_(values), root_(tables.buffers.size()), live_(tables.buffers.size() + tables.arenas.size()) {
    for (uint32_t b = 0; b < root_.size(); ++b) root_[b] = b;
    for (uint32_t a = 0; a < tables.arenas.size(); ++a)
      for (const uint32_t b : tables.arenas[a].buffers) root_[b] = static_cast<uint32_t>(tables.buffers.size()) + a;
    for (uint32_t b = 0; b < root_.size(); ++b) {
      const BufferRecord& base = tables.buffers[b];
      for (uint32_t p = base.slices_first; p < base.slices_first + base.slices_count; ++p) root_[tables.slices[p].buffer] = root_[b];
    }
  }
  uint32_t root(uint32_t buffer) const { return root_[buffer]; }
  int64_t bytes(uint32_t buffer) const { return values_[tables_.buffers[buffer].bytes]; }
  int64_t arena_bytes(uint32_t arena) const { return values_[tables_.arenas[arena].bytes]; }
  // Bytes that the step takes, and those that it releases.
  int64_t taken(const StepRecord& step) {
    int64_t sum = 0;
    for (uint32_t i = step.arenas_first; i < step.arenas_first + step.arenas_count; ++i) sum += values_[tables_.arenas[i].bytes];
    if (step.kind == StepRecord::Kind::Allocate) sum += take(step.index);
    if (step.kind == StepRecord::Kind::Reuse && tables_.buffers[tables_.reuses[step.index].to].kind != plan::Buffer::Kind::Arena) {
      give_back(tables_.reuses[step.index].from);
      take(tables_.reuses[step.index].to);
    }
    if (step.kind == StepRecord::Kind::Extern && !tables_.externs[step.index].planned_out)
      for (const int64_t b : tables_.externs[step.index].results)
        if (b >= 0) sum += take(static_cast<uint32_t>(b));
    return sum;
  }
  int64_t released(const StepRecord& step) {
    int64_t sum = 0;
    if (step.kind == StepRecord::Kind::Free) sum += give_back(step.index);
    for (uint32_t i = 0; i < step.releases_count; ++i) sum += give_back(tables_.releases[step.releases_first + i]);
    return sum;
  }
  int64_t take(uint32_t buffer) { return live_[buffer] = bytes(buffer); }
  int64_t give_back(uint32_t buffer) { return std::exchange(live_[buffer], 0); }

 private:
  const Tables& tables_;
  const std::span<const int64_t> values_;
  std::vector<uint32_t> root_;
  std::vector<int64_t> live_;
};

int64_t peak_of(const Tables& tables, std::span<const int64_t> values) {
  Memory memory(tables, values);
  int64_t live = 0, peak = 0;
  for (const int64_t b : tables.input_buffers)
    if (b >= 0) live += memory.take(static_cast<uint32_t>(b));
  for (const StepRecord& step : tables.steps) {
    live += memory.taken(step);
    peak = std::max(peak, live);
    live -= memory.released(step);
  }
  return peak;
}

std::string why_no_launch(const plan::Plan& plan, const LaunchRecord& launch) {
  if (launch.stream < 0) return "runs on the CPU";
  for (const plan::Param& param : plan.kernels[plan::KernelId(launch.kernel)].params)
    if (param.by_value) return "takes a number from memory of the host";
  return {};
}

std::string why_no_call(const Tables& tables, const ExternRecord& record, const RefusedCalls& refused) {
  if (const auto found = refused.find(record.name); found != refused.end()) return "could not be recorded: " + found->second;
  if (!record.callee->recordable()) return "is not known to do the same work in each call";
  Device device;
  const auto is_elsewhere = [&](uint32_t buffer) {
    const Device found = tables.buffers[buffer].device;
    if (!has_streams(found)) return true;
    if (!has_streams(device)) device = found;
    return found != device;
  };
  for (const OperandRecord& operand : record.operands)
    if (operand.is_tensor && is_elsewhere(operand.buffer)) return "reads memory of another device";
  for (size_t i = 0; i < record.results.size(); ++i) {
    if (record.results[i] < 0) continue;
    if (is_elsewhere(static_cast<uint32_t>(record.results[i]))) return "writes memory of another device";
    if (record.result_aliases[i]) return "returns one of its operands";
  }
  if (!has_streams(device)) return "uses no memory of a GPU";
  return {};
}

Device device_of(const Tables& tables, const StepRecord& step) {
  if (step.kind == StepRecord::Kind::Launch) return tables.stream_devices[static_cast<size_t>(tables.launches[step.index].stream)];
  if (step.kind == StepRecord::Kind::GroupedLaunch)
    return tables.stream_devices[static_cast<size_t>(tables.launches[tables.grouped_launches[step.index].first].stream)];
  const ExternRecord& record = tables.externs[step.index];
  for (const OperandRecord& operand : record.operands)
    if (operand.is_tensor) return tables.buffers[operand.buffer].device;
  return tables.buffers[static_cast<uint32_t>(record.results[0])].device;
}

class Finder {
 public:
  Finder(const plan::Plan& plan, const Tables& tables, std::span<const int64_t> values, const RefusedCalls& refused)
      : plan_(plan), tables_(tables), refused_(refused), memory_(tables, values), limit_(std::max(deferred_at_least, peak_of(tables, values) / deferred_share)) {
    for (const int64_t b : tables.input_buffers)
      if (b >= 0) memory_.take(static_cast<uint32_t>(b));
    const auto buffers = static_cast<uint32_t>(tables_.buffers.size());
    arena_ends_.resize(tables_.arenas.size());
    for (uint32_t s = 0; s < tables_.steps.size(); ++s)
      each_buffer(tables_.steps[s], [&](uint32_t buffer) {
        if (const uint32_t root = memory_.root(buffer); root >= buffers) arena_ends_[root - buffers] = s + 1;
      });
  }

  std::vector<Stretch> find() {
    for (uint32_t s = 0; s < tables_.steps.size(); ++s) {
      const StepRecord& step = tables_.steps[s];
      const bool joins = can_join(step);
      if (!joins) close(s);
      if (joins && queues_work(step) && (!open_ || device_of(tables_, step) != open_->device)) {
        close(s);
        open(s, device_of(tables_, step));
      }
      if (open_) add(step);
      memory_.taken(step);
      deferred_ += memory_.released(step);
      if (deferred_ > limit_) close(s + 1);
      if (!open_) deferred_ = 0;
    }
    close(static_cast<uint32_t>(tables_.steps.size()));
    return std::move(found_);
  }

 private:
  // Calls that run ahead queue no work of the stretch.
  bool queues_work(const StepRecord& step) const {
    if (step.kind == StepRecord::Kind::Extern) return !runs_ahead(tables_, tables_.externs[step.index]);
    return step.kind == StepRecord::Kind::Launch || step.kind == StepRecord::Kind::GroupedLaunch;
  }

  bool takes_memory(const StepRecord& step) const {
    if (step.kind == StepRecord::Kind::Extern) return !tables_.externs[step.index].planned_out || step.arenas_count > 0;
    return step.kind == StepRecord::Kind::Allocate || step.kind == StepRecord::Kind::Reuse || step.arenas_count > 0;
  }

  bool can_join(const StepRecord& step) const {
    if (step.kind == StepRecord::Kind::Extern && !runs_ahead(tables_, tables_.externs[step.index])) {
      const ExternRecord& record = tables_.externs[step.index];
      for (const int64_t b : record.results)  // the recording takes memory for it once more
        if (b >= 0 && !record.planned_out && memory_.bytes(static_cast<uint32_t>(b)) > limit_) return false;
    }
    return why_not_recorded(plan_, tables_, step, refused_).empty();
  }

  void open(uint32_t first, Device device) {
    const auto stream = std::ranges::find(tables_.stream_devices, device);
    if (stream == tables_.stream_devices.end()) return;  // library calls alone
    open_ = Stretch{.first = first, .last = first, .device = device, .stream = static_cast<uint32_t>(stream - tables_.stream_devices.begin())};
    deferred_ = 0;
  }

  void close(uint32_t last) {
    if (open_) {
      open_->last = last;
      find_scratch();
      for (uint32_t s = open_->first; s < last; ++s) {
        if (takes_memory(tables_.steps[s])) open_->takes.push_back(s);
        if (tables_.steps[s].kind == StepRecord::Kind::Free || tables_.steps[s].releases_count > 0) open_->gives_back.push_back(s);
      }
      found_.push_back(std::move(*open_));
    }
    open_.reset();
    deferred_ = 0;
  }

  // Arenas that the steps of the stretch take, and that no later step uses.
  void find_scratch() {
    for (uint32_t s = open_->first; s < open_->last; ++s) {
      const StepRecord& step = tables_.steps[s];
      for (uint32_t arena = step.arenas_first; arena < step.arenas_first + step.arenas_count; ++arena) {
        const int64_t bytes = memory_.arena_bytes(arena);
        const bool fits = open_->scratch_bytes + bytes <= std::min(limit_, most_scratch);
        if (bytes == 0 || !fits || tables_.arenas[arena].device != open_->device || arena_ends_[arena] > open_->last) continue;
        open_->scratch.push_back({arena, open_->scratch_bytes});
        open_->scratch_bytes += (bytes + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
      }
    }
  }

  void use(uint32_t buffer) {
    const uint32_t root = memory_.root(buffer);
    if (std::ranges::find(open_->roots, root) == open_->roots.end()) open_->roots.push_back(root);
  }

  void add(const StepRecord& step) {
    if (!queues_work(step)) return;
    ++(step.kind == StepRecord::Kind::Extern ? open_->calls : open_->launches);
    each_buffer(step, [this](uint32_t buffer) { use(buffer); });
  }

  // The buffers that a step reads or writes.
  template <class Use>
  void each_buffer(const StepRecord& step, const Use& use) const {
    const auto add_launch = [&](const LaunchRecord& launch) {
      for (const uint32_t b : launch.args) use(b);
    };
    if (step.kind == StepRecord::Kind::Launch) add_launch(tables_.launches[step.index]);
    if (step.kind == StepRecord::Kind::GroupedLaunch) {
      const GroupedLaunchRecord& group = tables_.grouped_launches[step.index];
      for (uint32_t i = group.first; i < group.first + group.count; ++i) add_launch(tables_.launches[i]);
    }
    if (step.kind == StepRecord::Kind::Extern) {
      for (const OperandRecord& operand : tables_.externs[step.index].operands)
        if (operand.is_tensor) use(operand.buffer);
      for (const int64_t b : tables_.externs[step.index].results)
        if (b >= 0) use(static_cast<uint32_t>(b));
    }
    if (step.kind == StepRecord::Kind::Read) use(tables_.reads[step.index].from.buffer);
    if (step.kind == StepRecord::Kind::Reuse) {
      use(tables_.reuses[step.index].from);
      use(tables_.reuses[step.index].to);
    }
  }

  const plan::Plan& plan_;
  const Tables& tables_;
  const RefusedCalls& refused_;
  Memory memory_;
  const int64_t limit_;
  std::vector<uint32_t> arena_ends_;  // behind the last step that uses the arena
  int64_t deferred_ = 0;
  std::optional<Stretch> open_;
  std::vector<Stretch> found_;
};

}  // namespace

bool runs_ahead(const Tables& tables, const ExternRecord& record) {
  if (record.planned_out || record.moment > 0) return false;
  for (const OperandRecord& operand : record.operands)
    if (operand.is_tensor) return false;
  return std::ranges::all_of(record.results, [&](int64_t b) {
    return b < 0 || tables.buffers[static_cast<uint32_t>(b)].kind == plan::Buffer::Kind::ExternOwned;
  });
}

std::string why_not_recorded(const plan::Plan& plan, const Tables& tables, const StepRecord& step, const RefusedCalls& refused) {
  switch (step.kind) {
    case StepRecord::Kind::Allocate:
    case StepRecord::Kind::Free:
      return {};
    case StepRecord::Kind::Reuse: {
      const ReuseRecord& reuse = tables.reuses[step.index];
      const bool in_place = tables.buffers[reuse.to].kind == plan::Buffer::Kind::Arena || tables.buffers[reuse.from].kind == plan::Buffer::Kind::Standalone;
      return in_place ? "" : "may copy memory that someone else holds";
    }
    case StepRecord::Kind::Launch:
      return why_no_launch(plan, tables.launches[step.index]);
    case StepRecord::Kind::GroupedLaunch: {
      const GroupedLaunchRecord& group = tables.grouped_launches[step.index];
      return why_no_launch(plan, tables.launches[group.first]);
    }
    case StepRecord::Kind::Extern: {
      const ExternRecord& record = tables.externs[step.index];
      return runs_ahead(tables, record) ? "" : why_no_call(tables, record, refused);
    }
    case StepRecord::Kind::Read:
      return "the host waits for a number";
    case StepRecord::Kind::Assert:
      return "may raise";
  }
  return {};
}

std::vector<Stretch> find_stretches(const plan::Plan& plan, const Tables& tables, std::span<const int64_t> values,
                                    const RefusedCalls& refused) {
  return Finder(plan, tables, values, refused).find();
}

}  // namespace cxxinductor::runtime
