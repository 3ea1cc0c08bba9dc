#include "model/eager_memory.h"

#include <algorithm>
#include <map>

#include "ir/callees.h"
#include "ir/live_ranges.h"

namespace cxxinductor::model {
namespace {

class Run {
 public:
  explicit Run(const CallGraph& calls) : calls_(calls), block_of_(calls.values.size(), none) {
    for (size_t i = 0; i < calls.inputs.size(); ++i) add_input(i);
    for (const Call& call : calls.calls) {
      for_each_operand_ref(call, [&](OperandRef ref) { touch_in_flight(call, ref.operand); });
      for (CallValue result : call.results) define(result);
      if (starts_collective(call.callee))
        for (CallValue result : call.results) in_flight_[result] = &call;
      ++step_;
    }
    for (const Arg& output : calls.outputs) for_each_operand_ref(output, [&](OperandRef ref) { touch(ref.operand); });
    for (const auto& [input, value] : calls.mutations) touch(value);
  }

  std::map<Device, int64_t> peaks() const {
    std::map<Device, std::vector<LiveRange>> ranges;
    for (const CallValueInfo& info : calls_.values)
      if (info.kind == CallValueInfo::Kind::Tensor) ranges[info.device];
    for (const Block& block : blocks_) ranges[block.device].push_back(block.range);
    return peaks_of(ranges);
  }

 private:
  static constexpr size_t none = static_cast<size_t>(-1);

  struct Block {
    Device device;
    LiveRange range;
  };

  // Inputs count one by one, as in a plan, which does not know whether two of them share memory.
  void add_input(size_t position) {
    const CallValue id = calls_.inputs[position];
    const CallValueInfo& info = calls_.values[id];
    if (info.kind != CallValueInfo::Kind::Tensor) return;
    size_t block = none;
    if (calls_.donated.contains(static_cast<uint32_t>(position))) {
      const auto strides = calls_.input_strides.find(static_cast<uint32_t>(position));
      block = add_block(info.device,
                        share_hint(info.dtype, info.sizes, strides == calls_.input_strides.end() ? info.strides : strides->second, calls_.assumptions));
    }
    block_of_[id] = block;
    if (info.storage != 0) storages_[info.storage] = block;
  }

  size_t add_block(Device device, int64_t bytes) {
    blocks_.push_back({device, {allocated(bytes), step_, step_}});
    return blocks_.size() - 1;
  }

  void define(CallValue id) {
    const CallValueInfo& info = calls_.values[id];
    if (info.kind != CallValueInfo::Kind::Tensor) return;
    if (info.storage != 0) {
      if (const auto known = storages_.find(info.storage); known != storages_.end()) {
        block_of_[id] = known->second;
        return;
      }
    }
    block_of_[id] = add_block(info.device, bytes_hint(info.dtype, info.sizes, info.strides, calls_.assumptions));
    if (info.storage != 0) storages_[info.storage] = block_of_[id];
  }

  void touch(CallValue id) {
    if (block_of_[id] != none) blocks_[block_of_[id]].range.last = step_;
  }

  // What a collective reads lives until the wait.
  void touch_in_flight(const Call& call, CallValue operand) {
    touch(operand);
    if (const auto start = in_flight_.find(operand); start != in_flight_.end() && waits_for_collective(call.callee))
      for_each_operand_ref(*start->second, [&](OperandRef ref) { touch(ref.operand); });
  }

  const CallGraph& calls_;
  std::vector<Block> blocks_;
  std::vector<size_t> block_of_;  // by value; none: the caller's, or no tensor
  std::map<uint32_t, size_t> storages_;
  std::map<CallValue, const Call*> in_flight_;  // by result, the collective
  int step_ = 0;
};

}  // namespace

std::map<Device, int64_t> eager_peaks(const CallGraph& calls) { return Run(calls).peaks(); }

}  // namespace cxxinductor::model
