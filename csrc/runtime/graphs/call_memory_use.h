// When the steps of a plan take memory of a device and when its last use is, in a call of given sizes; and memory that several buffers share one
// after the other.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/executable_tables.h"

namespace cxxinductor::runtime {

// Numbers of memory: those of the buffers that have some of their own, and behind them those of arenas. Buffers that take over memory in place
// (stays_in_place), one after the other, have the number of the first.
using MemoryNumber = uint32_t;

// The number behind those: a stretch's block, with all memory that lies in it.
inline MemoryNumber block_number(const Tables& tables) { return static_cast<MemoryNumber>(tables.buffers.size() + tables.arenas.size()); }

struct MemoryUse {
  MemoryNumber memory = 0;
  int64_t bytes = 0;
  uint32_t first = 0, last = 0;  // steps [first, last) take it, use it and give it back; behind all steps: it leaves the call
  bool is_placeable = true;      // in a block: nothing but the addresses of kernels and library calls says where it lies
};

// A call of PyTorch's or ours without operands, whose results are memory of their own: it may run before the work of the stretch that it
// stands in.
bool runs_ahead(const Tables& tables, const ExternRecord& record);

// Whether the buffer takes over memory that the call itself has allocated, so that nobody else can hold it, or that a library call has
// returned as new. A replay has memory of the call for that too; step by step it is copied if somebody holds it.
bool stays_in_place(const Tables& tables, const ReuseRecord& reuse);

class CallMemoryUse {
 public:
  // values: the workspace of the call, with the sizes. held: of each input, whether somebody but the call holds it.
  CallMemoryUse(const Tables& tables, std::span<const int64_t> values, const std::vector<bool>& held, Device device);

  // The memory that a buffer lies in.
  MemoryNumber memory_of(uint32_t buffer) const { return memory_of_[buffer]; }
  int64_t bytes(uint32_t buffer) const { return values_[tables_.buffers[buffer].bytes]; }
  Device device_of(MemoryNumber memory) const;
  // What the call takes of the device's memory, in the order of `first`. Inputs are not among them.
  std::span<const MemoryUse> uses() const { return uses_; }
  // What the steps [first, last) take.
  std::span<const MemoryUse> uses_in(uint32_t first, uint32_t last) const;
  // Bytes that are taken before a step in a call that runs step by step, inputs included, and the most of all steps.
  struct Live {
    std::vector<int64_t> before;
    int64_t now = 0, peak = 0;
  };
  // Who holds inputs in later calls is not known: the same as in this one (those that nobody holds are free after their last use, and those that
  // the plan says are donated), somebody all but the donated ones (parameters, in a backward pass), or somebody all of them.
  enum Holding { held_as_in_this_call, all_but_donated_are_held, all_are_held };
  const Live& live(Holding holding) const { return live_[holding]; }
  int64_t peak() const { return live_[held_as_in_this_call].peak; }

 private:
  void add_step(uint32_t number);
  void take(MemoryNumber memory, int64_t bytes, uint32_t step);
  void give_back(MemoryNumber memory, uint32_t step);
  void add(int64_t bytes);

  const Tables& tables_;
  const std::span<const int64_t> values_;
  const Device device_;
  std::vector<MemoryNumber> memory_of_;
  std::vector<MemoryUse> uses_;
  std::array<Live, 3> live_;
  // By number, while steps are added: bytes now, and place in uses_ (-1: an input's).
  std::vector<int64_t> bytes_now_;
  std::vector<int64_t> use_of_;
  std::vector<bool> is_held_, is_donated_;
};

// The most bytes that are in use at once.
int64_t most_at_once(std::span<const MemoryUse> uses);

struct SharedBlock {
  struct Place {
    MemoryNumber memory = 0;
    int64_t offset = 0;
  };
  int64_t bytes = 0;
  int64_t left_out = 0;       // bytes of what found no place
  std::vector<Place> places;  // by number

  const Place* find(MemoryNumber memory) const {
    const auto found = std::ranges::lower_bound(places, memory, {}, &Place::memory);
    return found != places.end() && found->memory == memory ? &*found : nullptr;
  }
};
// Places so that what is in use at the same step does not overlap; what would reach beyond `most` bytes is left out.
SharedBlock share_block(std::span<const MemoryUse> uses, int64_t most);

// fn(buffer) for those that a step reads or writes.
template <class Fn>
void each_buffer(const Tables& tables, const StepRecord& step, const Fn& fn) {
  const auto add_launch = [&](const LaunchRecord& launch) {
    for (const uint32_t b : launch.args) fn(b);
  };
  if (step.kind == StepRecord::Kind::Launch) add_launch(tables.launches[step.index]);
  if (step.kind == StepRecord::Kind::GroupedLaunch) {
    const GroupedLaunchRecord& group = tables.grouped_launches[step.index];
    for (uint32_t i = group.first; i < group.first + group.count; ++i) add_launch(tables.launches[i]);
  }
  if (step.kind == StepRecord::Kind::Extern) {
    for (const OperandRecord& operand : tables.externs[step.index].operands)
      if (operand.is_tensor) fn(operand.buffer);
    for (const int64_t b : tables.externs[step.index].results)
      if (b >= 0) fn(static_cast<uint32_t>(b));
  }
  if (step.kind == StepRecord::Kind::Read) fn(tables.reads[step.index].from.buffer);
  if (step.kind == StepRecord::Kind::Reuse) {
    fn(tables.reuses[step.index].from);
    fn(tables.reuses[step.index].to);
  }
}

}  // namespace cxxinductor::runtime
