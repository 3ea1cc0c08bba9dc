#include "runtime/graphs/call_memory_use.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "ir/callees.h"

namespace cxxinductor::runtime {
namespace {
constexpr int64_t alignment = 512;  // as torch's allocator aligns

// Whether a call returned it as one of its operands.
bool is_alias(const Tables& tables, uint32_t result) {
  for (const ExternRecord& call : tables.externs)
    for (size_t i = 0; i < call.results.size(); ++i)
      if (call.results[i] == static_cast<int64_t>(result)) return call.result_aliases[i];
  return true;
}

int64_t aligned(int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// Each at the lowest offset that is free while it is used.
SharedBlock place_in_order(std::span<const MemoryUse* const> order, int64_t most) {
  struct Placed {
    const MemoryUse* use;
    int64_t offset;
  };
  std::vector<Placed> placed;  // by offset
  SharedBlock block;
  for (const MemoryUse* use : order) {
    int64_t offset = 0;
    for (const Placed& other : placed) {
      if (other.use->last <= use->first || use->last <= other.use->first) continue;
      if (offset + use->bytes <= other.offset) break;
      offset = std::max(offset, other.offset + aligned(other.use->bytes));
    }
    if (offset + use->bytes > most) {
      block.left_out += use->bytes;
      continue;
    }
    placed.insert(std::ranges::upper_bound(placed, offset, {}, &Placed::offset), {use, offset});
    block.places.push_back({use->memory, offset});
    block.bytes = std::max(block.bytes, offset + aligned(use->bytes));
  }
  return block;
}
}  // namespace

bool runs_ahead(const Tables& tables, const ExternRecord& record) {
  if (record.planned_out || record.moment > 0 || is_opaque_callee(record.name)) return false;
  for (const OperandRecord& operand : record.operands)
    if (operand.is_tensor) return false;
  return std::ranges::all_of(record.results,
                             [&](int64_t b) { return b < 0 || tables.buffers[static_cast<uint32_t>(b)].kind == plan::Buffer::Kind::ExternOwned; });
}

bool stays_in_place(const Tables& tables, const ReuseRecord& reuse) {
  using Kind = plan::Buffer::Kind;
  const Kind from = tables.buffers[reuse.from].kind;
  if (tables.buffers[reuse.to].kind == Kind::Arena) return false;
  return from == Kind::Standalone || (from == Kind::ExternOwned && !is_alias(tables, reuse.from));
}

CallMemoryUse::CallMemoryUse(const Tables& tables, std::span<const int64_t> values, const std::vector<bool>& held, Device device)
    : tables_(tables),
      values_(values),
      device_(device),
      memory_of_(tables.buffers.size()),
      bytes_now_(block_number(tables)),
      use_of_(block_number(tables), -1),
      is_held_(block_number(tables)),
      is_donated_(block_number(tables)) {
  const auto buffers = static_cast<uint32_t>(tables.buffers.size()), steps = static_cast<uint32_t>(tables.steps.size());
  for (uint32_t b = 0; b < buffers; ++b) memory_of_[b] = b;
  for (uint32_t a = 0; a < tables.arenas.size(); ++a)
    for (const uint32_t b : tables.arenas[a].buffers) memory_of_[b] = buffers + a;
  for (uint32_t b = 0; b < buffers; ++b) {
    const BufferRecord& base = tables.buffers[b];
    for (uint32_t p = base.slices_first; p < base.slices_first + base.slices_count; ++p) memory_of_[tables.slices[p].buffer] = memory_of_[b];
  }
  for (const StepRecord& step : tables.steps) {
    if (step.kind != StepRecord::Kind::Reuse) continue;
    const ReuseRecord& reuse = tables.reuses[step.index];
    if (stays_in_place(tables, reuse)) memory_of_[reuse.to] = memory_of_[reuse.from];
  }
  // A call lets go of them before it begins.
  const auto is_unused = [&](uint32_t buffer) { return std::ranges::find(tables.unused_inputs, buffer) != tables.unused_inputs.end(); };
  for (size_t i = 0; i < tables.input_buffers.size(); ++i) {
    const int64_t b = tables.input_buffers[i];
    if (b < 0 || device_of(static_cast<MemoryNumber>(b)) != device_ || is_unused(static_cast<uint32_t>(b))) continue;
    is_donated_[static_cast<size_t>(b)] = tables.donated_inputs[i];
    is_held_[static_cast<size_t>(b)] = held[i] && !tables.donated_inputs[i];
    add(bytes_now_[static_cast<size_t>(b)] = bytes(static_cast<uint32_t>(b)));
  }
  for (uint32_t s = 0; s < steps; ++s) add_step(s);
  // Calls keep arenas to their end; the last use is what counts here.
  for (MemoryUse& use : uses_)
    if (use.memory >= buffers) use.last = use.first + 1;
  for (uint32_t s = 0; s < steps; ++s)
    each_buffer(tables, tables.steps[s], [&](uint32_t buffer) {
      if (const MemoryNumber memory = memory_of_[buffer]; memory >= buffers && use_of_[memory] >= 0) uses_[static_cast<size_t>(use_of_[memory])].last = s + 1;
    });
}

void CallMemoryUse::add_step(uint32_t number) {
  const StepRecord& step = tables_.steps[number];
  for (Live& live : live_) live.before.push_back(live.now);
  for (uint32_t i = step.arenas_first; i < step.arenas_first + step.arenas_count; ++i)
    take(static_cast<MemoryNumber>(tables_.buffers.size()) + i, values_[tables_.arenas[i].bytes], number);
  if (step.kind == StepRecord::Kind::Allocate) take(step.index, bytes(step.index), number);
  if (step.kind == StepRecord::Kind::Reuse && tables_.buffers[tables_.reuses[step.index].to].kind != plan::Buffer::Kind::Arena) {
    const ReuseRecord& reuse = tables_.reuses[step.index];
    const MemoryNumber from = memory_of_[reuse.from], to = memory_of_[reuse.to];
    if (from != to) {
      use_of_[to] = use_of_[from];
      bytes_now_[to] = std::exchange(bytes_now_[from], 0);
      is_held_[to] = is_held_[from];
      is_donated_[to] = is_donated_[from];
      if (use_of_[to] >= 0) uses_[static_cast<size_t>(use_of_[to])].is_placeable = false;
    }
  }
  if (step.kind == StepRecord::Kind::Extern && !tables_.externs[step.index].planned_out) {
    const ExternRecord& call = tables_.externs[step.index];
    for (size_t i = 0; i < call.results.size(); ++i) {
      if (call.results[i] < 0) continue;
      const auto buffer = static_cast<uint32_t>(call.results[i]);
      if (tables_.buffers[buffer].kind != plan::Buffer::Kind::ExternOwned) continue;
      take(buffer, bytes(buffer), number);
      if (use_of_[buffer] >= 0) uses_[static_cast<size_t>(use_of_[buffer])].is_placeable = !runs_ahead(tables_, call) && !call.result_aliases[i];
    }
  }
  if (step.kind == StepRecord::Kind::Free) give_back(memory_of_[step.index], number);
  for (uint32_t i = 0; i < step.releases_count; ++i) give_back(tables_.releases[step.releases_first + i], number);
}

Device CallMemoryUse::device_of(MemoryNumber memory) const {
  return memory < tables_.buffers.size() ? tables_.buffers[memory].device : tables_.arenas[memory - tables_.buffers.size()].device;
}

void CallMemoryUse::take(MemoryNumber memory, int64_t bytes, uint32_t step) {
  if (device_of(memory) != device_) return;
  use_of_[memory] = static_cast<int64_t>(uses_.size());
  uses_.push_back({memory, bytes, step, static_cast<uint32_t>(tables_.steps.size()) + 1});
  add(bytes_now_[memory] = bytes);
}

void CallMemoryUse::give_back(MemoryNumber memory, uint32_t step) {
  const bool is_input = use_of_[memory] < 0;
  if (!is_input) uses_[static_cast<size_t>(use_of_[memory])].last = step + 1;
  const int64_t bytes = std::exchange(bytes_now_[memory], 0);
  if (!is_input || !is_held_[memory]) live_[held_as_in_this_call].now -= bytes;
  if (!is_input || is_donated_[memory]) live_[all_but_donated_are_held].now -= bytes;
  if (!is_input) live_[all_are_held].now -= bytes;
}

void CallMemoryUse::add(int64_t bytes) {
  for (Live& live : live_) {
    live.now += bytes;
    live.peak = std::max(live.peak, live.now);
  }
}

std::span<const MemoryUse> CallMemoryUse::uses_in(uint32_t first, uint32_t last) const {
  const auto begin = std::ranges::lower_bound(uses_, first, {}, &MemoryUse::first);
  const auto end = std::ranges::lower_bound(uses_, last, {}, &MemoryUse::first);
  return {begin, end};
}

int64_t most_at_once(std::span<const MemoryUse> uses) {
  if (uses.empty()) return 0;
  const uint32_t first = std::ranges::min(uses, {}, &MemoryUse::first).first, last = std::ranges::max(uses, {}, &MemoryUse::last).last;
  std::vector<int64_t> change(last - first + 1);
  for (const MemoryUse& use : uses) {
    change[use.first - first] += use.bytes;
    change[use.last - first] -= use.bytes;
  }
  int64_t now = 0, most = 0;
  for (const int64_t bytes : change) most = std::max(most, now += bytes);
  return most;
}

SharedBlock share_block(std::span<const MemoryUse> uses, int64_t most) {
  // None of these orders is the best for all networks: the one that leaves out the least, then the one that needs the least memory, is taken.
  constexpr double (*weights[])(const MemoryUse&) = {
      [](const MemoryUse& use) { return static_cast<double>(use.bytes); },
      [](const MemoryUse& use) { return static_cast<double>(use.last - use.first); },
      [](const MemoryUse& use) { return static_cast<double>(use.bytes) * (use.last - use.first); },
      [](const MemoryUse& use) { return -static_cast<double>(use.first); },
  };
  const int64_t least = aligned(most_at_once(uses));
  SharedBlock best;
  for (const auto weight : weights) {
    std::vector<const MemoryUse*> order;
    for (const MemoryUse& use : uses) order.push_back(&use);
    std::ranges::stable_sort(order, std::greater(), [&](const MemoryUse* use) { return weight(*use); });
    SharedBlock block = place_in_order(order, most);
    if (best.places.empty() || std::pair(block.left_out, block.bytes) < std::pair(best.left_out, best.bytes)) best = std::move(block);
    if (best.left_out == 0 && best.bytes <= least) break;
  }
  std::ranges::sort(best.places, {}, &SharedBlock::Place::memory);
  return best;
}

}  // namespace cxxinductor::runtime
