// The calls since the last sync point on the tensors of one device. While they are those of an earlier recording, they
// are only compared with it, call by call; from the first that differs on, their metadata is inferred and they become
// calls of a graph.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "torch_bridge/device/known_calls.h"
#include "torch_bridge/device/op_info.h"

namespace cxxinductor::torch_bridge {

// By number: recordings of a parent process which never run, since the thread that was about to is not in this one.
struct LostRecordings {
  uint64_t first = 0, end = 0;
};

class Recording {
 public:
  // backing: of the tensors of this device.
  Recording(c10::Device device, c10::Device backing, OpTable& ops, LostRecordings lost = {});

  // Records the call: its results replace its arguments on the stack. False: it cannot be recorded; nothing has
  // happened then.
  bool record(const OpInfo& info, torch::jit::Stack& stack);
  static bool goes_elsewhere(const OpInfo& info, const torch::jit::Stack& stack);
  size_t size() const { return count_; }
  uint64_t number() const { return number_; }
  // What a child loses that cannot use this recording: from this number on.
  LostRecordings lost_from(uint64_t first) const;
  // Why the buffer's elements never will be computed; "" where they may be.
  std::string failure_of(const Buffer& buffer) const;
  // What the calls so far are the first of; null: of nothing known.
  const KnownCalls* expected() const { return expected_.get(); }
  // Of those so far: inputs on the backing device, in their order, and, where the calls are expected ones, floats.
  const at::Tensor& input(size_t position) const { return inputs_[position].tensor; }
  double real(size_t position) const { return reals_[position]; }
  bool is_random() const { return random_state_.defined(); }
  // Of the backing device's generator, when the first random call was recorded.
  const at::Tensor& random_state() const { return random_state_; }

  // Whether the recording alone keeps more than that of the memory of inputs, which eager would have freed. Looks at them
  // now and then.
  bool keeps(int64_t bytes);

  // All calls; the recording starts anew. expected: what the next calls will be, as far as that is known.
  struct Finished {
    std::shared_ptr<KnownCalls> expected;  // null: `calls` have not been compared with known ones
    RecordedCalls calls;
    std::vector<double> reals;        // of this recording, whatever those of the expected one were
    std::vector<int64_t> results;     // values of `outputs`, -1, positions of donated inputs
    std::vector<c10::IValue> inputs;  // on the backing device
    std::vector<BufferPtr> outputs;   // that get the results
    bool has_effects = false;         // it writes to inputs or draws random numbers: to be run whether it has outputs or not
  };
  Finished finish();
  // Inputs of calls that were not recorded, where no other call was: what follows may change them.
  void forget_inputs();
  void expect(std::shared_ptr<KnownCalls> expected) { expected_ = std::move(expected); }
  // The results of `finish` have elements now, or never will.
  static void set_results(const Finished& finished, const std::vector<c10::IValue>& results);
  static void fail(const Finished& finished, const std::string& reason);

 private:
  struct Input {
    uint32_t value = 0;
    RecordedCalls::Value info;
    c10::Device device = c10::kCPU;
    at::Tensor tensor;
    std::optional<c10::weak_intrusive_ptr<Buffer>> buffer;  // none: of a CPU scalar
  };
  struct Created {
    uint32_t value = 0;
    c10::weak_intrusive_ptr<Buffer> buffer;
  };

  bool follows() const { return expected_ != nullptr; }
  const RecordedCalls& calls() const { return follows() ? expected_->calls : own_; }
  std::optional<uint32_t> known_value(const Buffer& buffer, const at::Tensor& tensor) const;
  uint32_t value_of(const at::Tensor& tensor);
  uint32_t value_of_scalar(const at::Tensor& tensor);
  void enter(Buffer& buffer, const at::Tensor& tensor);
  void add_input(Input input);
  void add_own_input(const Input& input);
  bool record_first(const OpInfo& info, torch::jit::Stack stack);
  void need_operands(const c10::IValue& argument);
  void encode(const OpInfo& info, const torch::jit::Stack& stack);
  void encode(const c10::IValue& value, bool is_enum);
  bool is_expected();
  bool is_next(const RecordedCalls& expected) const;
  void diverge();
  bool infer(const OpInfo& info, const torch::jit::Stack& stack);
  bool reals_decide(const OpInfo& info, const model::Call& call);
  void fix_reals();
  void push_results(const OpInfo& info, torch::jit::Stack& stack);
  at::Tensor result(uint32_t value, c10::ArrayRef<c10::IValue> arguments);
  at::Tensor view_of(const at::Tensor& argument, uint32_t value);
  void start();
  void clear_pending();
  void drop_call();

  const c10::Device device_, backing_;
  const LostRecordings lost_;
  OpTable& ops_;
  uint64_t number_ = 0;  // of this recording, in the process
  std::shared_ptr<KnownCalls> expected_;
  std::vector<double> reals_;  // so far, where the calls are the expected ones
  RecordedCalls own_;          // where the calls are not the expected ones
  size_t count_ = 0;           // of calls
  uint32_t values_ = 0;
  CallCode pending_;                            // of inputs since the last call, and of the call at hand
  size_t input_words_ = 0, input_numbers_ = 0;  // of it, those of inputs
  std::vector<Input> inputs_;
  std::vector<Created> created_;
  std::vector<std::pair<const void*, uint32_t>> scalars_;  // of the call at hand
  Buffer* into_ = nullptr;                                 // whose first value is the result of the call at hand
  at::Tensor random_state_;
  bool writes_ = false;
  size_t inputs_to_check_ = 0;  // when there are as many, `keeps` looks at them
};

}  // namespace cxxinductor::torch_bridge
