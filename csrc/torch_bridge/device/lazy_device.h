// The recorded device: calls on its tensors are recorded, and run compiled at sync points.
//
// One lock guards recordings and buffers: autograd records the backward on a thread of its own. It is not held while an
// op runs through ATen, which may call back into Python. A child forked while another thread held it records anew: tensors that
// the lost recordings knew have no elements there.
#pragma once

#include <cxxinductor/device.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/fork_mutex.h"
#include "torch_bridge/device/context_settings.h"
#include "torch_bridge/device/recording.h"

namespace cxxinductor::torch_bridge {

class LazyDevice {
 public:
  LazyDevice(c10::DeviceType backing, c10::DeviceIndex count, Options options);

  // A call below autograd: results replace arguments on the stack.
  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  // Runs what is recorded, on all devices.
  void flush();
  // Random numbers that are recorded are drawn before `change` runs, from the state that they were recorded with.
  template <class Change>
  auto with_generator(c10::DeviceIndex index, const Change& change) {
    const std::lock_guard lock(mutex_);
    draw_recorded(index);
    return change();
  }

  c10::DeviceIndex count() const { return static_cast<c10::DeviceIndex>(lanes_.size()); }
  c10::Device backing(c10::DeviceIndex index) const;
  DeviceCounters counters() const;
  // Whether compiled recordings start early (early_start.h).
  void set_early_starts(bool on);
  std::string describe() const;

 private:
  // Of an index.
  struct Lane {
    Recording recording;
    ContextSettings settings;  // that the recording's calls were made under, where there are some
    EarlyStart early;
    std::vector<std::shared_ptr<KnownCalls>> known;  // what was used longest ago first
    std::shared_ptr<KnownCalls> last;
    uint64_t first_unfinished = recording.number();  // of the recordings that have not run
  };
  using Lock = std::unique_lock<ForkMutex>;

  std::unique_ptr<Lane> make_lane(c10::DeviceIndex index, LostRecordings lost);
  void record_anew_in_child();
  bool run_memory_op(const OpInfo& info, torch::jit::Stack& stack);
  void make_empty(torch::jit::Stack& stack, const OpInfo& info);
  bool copy(torch::jit::Stack& stack);
  bool to_copy(torch::jit::Stack& stack);
  // Through ATen, on the backing tensors.
  void run_on_backing(const OpInfo& info, torch::jit::Stack& stack);
  c10::IValue to_backing(const c10::IValue& value);
  c10::IValue from_backing(const c10::IValue& value, const std::vector<at::Tensor>& arguments, c10::DeviceIndex index);
  void follow_settings(Lane& lane, const OpInfo& next);
  void flush(Lane& lane);
  void run_recorded(Lane& lane);
  void draw_recorded(c10::DeviceIndex index);
  std::shared_ptr<KnownCalls> find_or_add(Lane& lane, Recording::Finished& finished) const;
  c10::DeviceIndex index_of(const OpInfo& info, const torch::jit::Stack& stack) const;
  at::Tensor on_device(const at::Tensor& tensor, c10::DeviceIndex index);

  const c10::DeviceType backing_;
  const Options options_;
  mutable ForkMutex mutex_{[this] { record_anew_in_child(); }};  // guards all that follows, and Buffers
  std::unique_ptr<OpTable> ops_ = std::make_unique<OpTable>();
  std::vector<std::unique_ptr<Lane>> lanes_;
  DeviceCounters counters_;
  const std::shared_ptr<std::atomic<int64_t>> compiled_ = std::make_shared<std::atomic<int64_t>>(0);
  std::map<std::string, int64_t> through_aten_;  // how often, by op
};

// The index of this thread.
c10::DeviceIndex& current_index();

}  // namespace cxxinductor::torch_bridge
