#include "runtime/graphs/stretches.h"

#include <algorithm>
#include <map>

#include "ir/device_types.h"

namespace cxxinductor::runtime {
namespace {

// What calls may need above their peak step by step, for each case of who holds their inputs: so many bytes, and one part in so many of it. In the
// last one, a graph is kept for a second backward pass: nothing is free before the end, and its peak seldom is the program's.
struct Allowance {
  CallMemoryUse::Holding holding;
  int64_t bytes, share;
};
constexpr Allowance allowances[] = {
    {CallMemoryUse::held_as_in_this_call, int64_t{4} << 20, 2000},
    {CallMemoryUse::all_but_donated_are_held, int64_t{4} << 20, 2000},
    {CallMemoryUse::all_are_held, int64_t{16} << 20, 20},
};
constexpr int64_t most_scratch = int64_t{16} << 20;  // it stays taken between calls
// One piece of memory that large is hard to find for the allocator.
constexpr int64_t most_block = int64_t{256} << 20, most_in_block = int64_t{64} << 20;
// Recordings take memory for a library call's result once more, one after the other: so much, or one part in so many of the peak.
constexpr int64_t recorded_results_allowed = int64_t{32} << 20, share_of_results = 40;
// A replay takes the host about as long as three launches, or one library call, do step by step.
constexpr uint32_t launches_per_call = 3, least_launches = 4;
// All memory that a stretch needs is taken before it is queued, and a GPU without work waits for that. Where there is much to take, the first
// stretches of a call are short ones, each twice as long as the one before: the GPU works on one while the host prepares the next.
constexpr size_t much_to_take = 64;  // preparations
constexpr uint32_t first_work = 16;  // launches and calls
constexpr uint32_t look_ahead = 64;  // steps: memory that is given back may bring a stretch below the limit again

std::string why_no_launch(const plan::Plan& plan, const LaunchRecord& launch) {
  if (launch.stream < 0) return "runs on the CPU";
  for (const plan::Param& param : plan.kernels[plan::KernelId(launch.kernel)].params)
    if (param.by_value) return "takes a number from memory of the host";
  return {};
}

std::string why_no_call(const Tables& tables, const ExternRecord& record, const Refusals& refused) {
  if (const auto found = refused.calls.find(record.name); found != refused.calls.end()) return "could not be recorded: " + found->second;
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

Device device_of_step(const Tables& tables, const StepRecord& step) {
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
  Finder(const plan::Plan& plan, const Tables& tables, std::span<const int64_t> values, const std::vector<bool>& held, const Refusals& refused)
      : plan_(plan), tables_(tables), refused_(refused), block_(block_number(tables)) {
    for (const Device device : tables.stream_devices) memory_.emplace(device, CallMemoryUse(tables, values, held, device));
  }

  std::vector<Stretch> find() {
    std::vector<Stretch> found;
    const auto count = static_cast<uint32_t>(tables_.steps.size());
    uint32_t first = 0;  // steps from here on only change memory
    uint32_t work = first_work;
    uint32_t end = 0;  // of the steps that can be recorded together
    for (uint32_t s = 0; s < count;) {
      const StepRecord& step = tables_.steps[s];
      if (!can_join(step)) {
        first = ++s;
      } else if (!queues_work(step)) {
        ++s;
      } else {
        const Device device = device_of_step(tables_, step);
        if (s >= end) end = end_of_recordable(s, device);
        uint32_t last = reach(first, s, end, memory_.at(device));
        const auto stream = static_cast<uint32_t>(std::ranges::find(tables_.stream_devices, device) - tables_.stream_devices.begin());
        Stretch stretch = make(first, last, device, stream);
        if (const uint32_t early = end_after(work, stretch, s); early < last) {
          stretch = make(first, last = early, device, stream);
          work *= 2;  // at most the steps of a plan
        }
        if (stretch.launches + launches_per_call * stretch.calls >= least_launches || is_whole(stretch)) found.push_back(std::move(stretch));
        first = s = last;
      }
    }
    return found;
  }

 private:
  // Calls that run ahead queue no work of the stretch.
  bool queues_work(const StepRecord& step) const {
    if (step.kind == StepRecord::Kind::Extern) return !runs_ahead(tables_, tables_.externs[step.index]);
    return step.kind == StepRecord::Kind::Launch || step.kind == StepRecord::Kind::GroupedLaunch;
  }

  bool can_join(const StepRecord& step) const {
    if (step.kind == StepRecord::Kind::Extern && !runs_ahead(tables_, tables_.externs[step.index])) {
      const ExternRecord& record = tables_.externs[step.index];
      for (const int64_t b : record.results) {
        if (b < 0 || record.planned_out) continue;
        const auto memory = memory_.find(tables_.buffers[static_cast<uint32_t>(b)].device);
        if (memory == memory_.end() ||
            memory->second.bytes(static_cast<uint32_t>(b)) > std::max(recorded_results_allowed, memory->second.peak() / share_of_results))
          return false;
      }
    }
    return why_not_recorded(plan_, tables_, step, refused_).empty();
  }

  // Small graphs of one stretch: nothing but the replay is left of the call. One launch alone takes longer to patch than to launch.
  bool is_whole(const Stretch& stretch) const {
    return stretch.first == 0 && stretch.last == tables_.steps.size() && stretch.launches + launches_per_call * stretch.calls > 1;
  }

  // Behind step `working`, which queues work of the device: the first step that no stretch with it can have.
  uint32_t end_of_recordable(uint32_t working, Device device) const {
    const auto is_other = [&](const StepRecord& step) { return !can_join(step) || (queues_work(step) && device_of_step(tables_, step) != device); };
    return static_cast<uint32_t>(std::find_if(tables_.steps.begin() + working + 1, tables_.steps.end(), is_other) - tables_.steps.begin());
  }

  // The end of a stretch that begins with `first`, has step `working`, the first one with work, and ends by `end`.
  uint32_t reach(uint32_t first, uint32_t working, uint32_t end, const CallMemoryUse& memory) const {
    if (stays_near_peak(first, end, memory)) return end;
    std::vector<uint32_t> ends{working + 1};
    for (uint32_t s = working + 1; s < end && s < ends.back() + look_ahead; ++s)
      if (may_fit(first, taken_by(first, s + 1, memory), memory)) ends.push_back(s + 1);
    // Seldom does the block need more than is in use at once.
    while (ends.size() > 1 && !stays_near_peak(first, ends.back(), memory)) ends.resize(ends.size() / 2);
    return ends.back();
  }

  // Where a stretch that has `working` as its first step with work ends after so much work, if it has much more and much memory to take.
  uint32_t end_after(uint32_t work, const Stretch& stretch, uint32_t working) const {
    if (stretch.preparations.size() < much_to_take || stretch.launches + stretch.calls < 2 * work) return stretch.last;
    uint32_t last = working;
    for (uint32_t done = 0; done < work; ++last)
      if (queues_work(tables_.steps[last])) ++done;
    return stays_near_peak(stretch.first, last, memory_.at(stretch.device)) ? last : stretch.last;
  }

  static bool fits_block(const MemoryUse& use, uint32_t last) { return use.is_placeable && use.last <= last && use.bytes > 0 && use.bytes <= most_in_block; }

  // Whether a call that takes so much more before step `first` needs little above its peak step by step, whoever holds its inputs.
  static bool fits(uint32_t first, int64_t bytes, const CallMemoryUse& memory) {
    return std::ranges::all_of(allowances, [&](const Allowance& allowed) {
      const CallMemoryUse::Live& live = memory.live(allowed.holding);
      return live.before[first] + bytes - live.peak <= std::max(allowed.bytes, live.peak / allowed.share);
    });
  }

  // What the steps [first, last) take while they are queued as one.
  struct Taken {
    std::vector<MemoryUse> in_block;
    int64_t apart = 0;  // bytes
  };
  static Taken taken_by(uint32_t first, uint32_t last, const CallMemoryUse& memory) {
    Taken taken;
    for (const MemoryUse& use : memory.uses_in(first, last)) {
      if (fits_block(use, last))
        taken.in_block.push_back(use);
      else
        taken.apart += use.bytes;
    }
    return taken;
  }

  // Whether a call needs little above its peak step by step if it takes that before step `first`, and the block no more than is in use at once.
  static bool may_fit(uint32_t first, const Taken& taken, const CallMemoryUse& memory) {
    return fits(first, taken.apart + most_at_once(taken.in_block), memory);
  }

  // Whether it does while the steps [first, last) are queued as one.
  static bool stays_near_peak(uint32_t first, uint32_t last, const CallMemoryUse& memory) {
    const Taken taken = taken_by(first, last, memory);
    if (!may_fit(first, taken, memory)) return false;  // placing takes longer
    const SharedBlock block = share_block(taken.in_block, most_block);
    return fits(first, taken.apart + block.bytes + block.left_out, memory);
  }

  Stretch make(uint32_t first, uint32_t last, Device device, uint32_t stream) const {
    Stretch stretch{.first = first, .last = last, .device = device, .stream = stream};
    const CallMemoryUse& memory_use = memory_.at(device);
    stretch.block = share_block(taken_by(first, last, memory_use).in_block, most_block);
    for (const SharedBlock::Place& place : stretch.block.places)
      if (place.memory < tables_.buffers.size()) stretch.block_buffers.push_back(place);
    stretch.block_in_scratch = stretch.block.bytes <= most_scratch;
    for (uint32_t s = first; s < last; ++s) {
      const StepRecord& step = tables_.steps[s];
      add_preparations(stretch, memory_use, s);
      if (step.kind == StepRecord::Kind::Free && !is_in_block(stretch, memory_use.memory_of(step.index))) stretch.given_back.push_back(step.index);
      for (uint32_t i = 0; i < step.releases_count; ++i) stretch.given_back.push_back(tables_.releases[step.releases_first + i]);
      if (!queues_work(step)) continue;
      ++(step.kind == StepRecord::Kind::Extern ? stretch.calls : stretch.launches);
      each_buffer(tables_, step, [&](uint32_t buffer) {
        const MemoryNumber memory = memory_use.memory_of(buffer), range = is_in_block(stretch, memory) ? block_ : memory;
        if (std::ranges::find(stretch.accessed, range) == stretch.accessed.end()) stretch.accessed.push_back(range);
      });
    }
    return stretch;
  }

  void add_preparations(Stretch& stretch, const CallMemoryUse& memory_use, uint32_t number) const {
    using Kind = Stretch::Preparation::Kind;
    const StepRecord& step = tables_.steps[number];
    const auto add = [&](Kind kind, MemoryNumber memory, uint32_t index) {
      (is_in_block(stretch, memory) ? stretch.block_preparations : stretch.preparations).push_back({kind, index, number});
    };
    for (uint32_t a = step.arenas_first; a < step.arenas_first + step.arenas_count; ++a)
      add(Kind::Arena, static_cast<MemoryNumber>(tables_.buffers.size()) + a, a);
    if (step.kind == StepRecord::Kind::Allocate) add(Kind::Buffer, step.index, step.index);
    if (step.kind == StepRecord::Kind::Reuse) {
      const uint32_t to = tables_.reuses[step.index].to;
      add(Kind::Reuse, memory_use.memory_of(to), step.index);
      // Those in arenas are placed with their arena.
      const SharedBlock::Place* const place = stays_in_place(tables_, tables_.reuses[step.index]) ? stretch.block.find(memory_use.memory_of(to)) : nullptr;
      if (place) stretch.block_buffers.push_back({to, place->offset});
    }
    if (step.kind != StepRecord::Kind::Extern) return;
    const ExternRecord& call = tables_.externs[step.index];
    if (!queues_work(step)) return stretch.preparations.push_back({Kind::Call, step.index, number});
    if (call.planned_out) return;
    for (const int64_t b : call.results)
      if (b >= 0 && tables_.buffers[static_cast<uint32_t>(b)].kind == plan::Buffer::Kind::ExternOwned)
        add(Kind::Buffer, static_cast<uint32_t>(b), static_cast<uint32_t>(b));
  }

  static bool is_in_block(const Stretch& stretch, MemoryNumber memory) { return stretch.block.find(memory) != nullptr; }

  const plan::Plan& plan_;
  const Tables& tables_;
  const Refusals& refused_;
  std::map<Device, CallMemoryUse> memory_;
  const MemoryNumber block_;
};

}  // namespace

std::string why_not_recorded(const plan::Plan& plan, const Tables& tables, const StepRecord& step, const Refusals& refused) {
  if (const auto found = refused.steps.find(static_cast<uint32_t>(&step - tables.steps.data())); found != refused.steps.end()) return found->second;
  switch (step.kind) {
    case StepRecord::Kind::Allocate:
    case StepRecord::Kind::Free:
      return {};
    case StepRecord::Kind::Reuse: {
      const ReuseRecord& reuse = tables.reuses[step.index];
      const bool in_arena = tables.buffers[reuse.to].kind == plan::Buffer::Kind::Arena;
      return in_arena || stays_in_place(tables, reuse) ? "" : "may copy memory that someone else holds";
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

std::vector<Stretch> find_stretches(const plan::Plan& plan, const Tables& tables, std::span<const int64_t> values, const std::vector<bool>& held,
                                    const Refusals& refused) {
  return Finder(plan, tables, values, held, refused).find();
}

}  // namespace cxxinductor::runtime
