#include "ir/plan/memory.h"

#include <algorithm>

#include "ir/live_ranges.h"

namespace cxxinductor::plan {
namespace {

struct Span {
  int first = -1, last = -1;  // steps that touch the buffer, Allocate and Free included
  bool alias = false;         // its memory is another buffer's
};

class Walk {
 public:
  explicit Walk(const Plan& plan) : plan_(plan), spans_(plan.buffers.size()) {
    for (const Step& step : plan.steps) {
      std::visit([this](const auto& s) { visit(s); }, step);
      ++step_;
    }
    for (const Output& output : plan.outputs) {
      if (output.kind == Output::Kind::Tensor) touch(output.buffer);
      if (output.kind == Output::Kind::View) touch(output.view.buffer);
    }
  }

  const Span& span(BufferId id) const { return spans_[id]; }
  int steps() const { return step_ + 1; }  // the last one hands the outputs out

 private:
  void touch(BufferId id) {
    touch_one(id);
    for_each_base(plan_, id, [this](BufferId base) { touch_one(base); });
  }
  void touch_one(BufferId id) {
    Span& span = spans_[id];
    if (span.first < 0) span.first = step_;
    span.last = step_;
  }
  void visit(const Allocate& step) { touch(step.buffer); }
  void visit(const Free& step) { touch(step.buffer); }
  void visit(const Reuse& step) {
    Span& from = spans_[step.from];
    from.last = std::max(from.last, step_ - 1);
    if (from.first < 0) from.first = from.last;
    touch(step.to);
  }
  void visit(const Launch& launch) {
    for (BufferId arg : launch.args) touch(arg);
  }
  void visit(const GroupedLaunch& batch) {
    for (const Launch& launch : batch.launches) visit(launch);
  }
  void visit(const CallExtern& call) {
    for (const auto& operand : call.operands)
      if (const auto* view = std::get_if<View>(&operand)) touch(view->buffer);
    for (size_t r = 0; r < call.results.size(); ++r) {
      if (!call.results[r].valid()) continue;
      touch(call.results[r]);
      if (r < call.alias_of.size() && call.alias_of[r] >= 0) spans_[call.results[r]].alias = true;
    }
  }

  const Plan& plan_;
  IdVector<BufferId, Span> spans_;
  int step_ = 0;
};

}  // namespace

MemoryProfile profile_memory(const Plan& plan) {
  const Walk walk(plan);
  std::vector<bool> donated(plan.buffers.size(), false);
  for (const Input& input : plan.inputs)
    if (plan.buffers.contains(input.buffer)) donated[input.buffer.index()] = input.donated;
  std::vector<LiveRange> held, alive;
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[BufferId(b)];
    const Span& span = walk.span(BufferId(b));
    const bool input = buffer.kind == Buffer::Kind::Input;
    if (span.last < 0 || span.alias || buffer.kind == Buffer::Kind::Slice) continue;
    if (buffer.device.type != plan.arena_device.type || (input && !donated[b])) continue;
    const int64_t bytes = input ? share_hint(buffer.dtype, buffer.sizes, buffer.strides, plan.assumptions)
                                : bytes_hint(buffer.bytes, plan.assumptions);
    const LiveRange range{bytes, input ? 0 : span.first, span.last};
    alive.push_back(range);
    if (buffer.kind != Buffer::Kind::Arena) held.push_back({allocated(bytes), range.first, range.last});
  }
  const MemoryPeak most = find_peak(held);
  return {allocated(bytes_hint(plan.arena_bytes, plan.assumptions)) + most.bytes, find_peak(alive).bytes, most.step};
}

}  // namespace cxxinductor::plan
