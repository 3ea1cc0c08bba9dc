#include "ir/plan/memory.h"

#include <algorithm>

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
    Span& span = spans_[id];
    if (span.first < 0) span.first = step_;
    span.last = step_;
  }
  void visit(const Allocate& step) { touch(step.buffer); }
  void visit(const Free& step) { touch(step.buffer); }
  void visit(const Launch& launch) {
    for (BufferId arg : launch.args) touch(arg);
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

std::optional<MemoryProfile> profile_memory(const Plan& plan, bool inputs_given_up) {
  if (!plan.arena_bytes.is_constant()) return std::nullopt;
  const Walk walk(plan);
  std::vector<int64_t> held(static_cast<size_t>(walk.steps()), 0), alive = held;
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const BufferId id(b);
    const Buffer& buffer = plan.buffers[id];
    const Span& span = walk.span(id);
    if (!buffer.bytes.is_constant()) return std::nullopt;
    if (span.last < 0 || span.alias || (buffer.kind == Buffer::Kind::Input && !inputs_given_up)) continue;
    const int first = buffer.kind == Buffer::Kind::Input ? 0 : span.first;
    for (int t = first; t <= span.last; ++t) {
      alive[static_cast<size_t>(t)] += buffer.bytes.constant();
      if (buffer.kind != Buffer::Kind::Arena) held[static_cast<size_t>(t)] += buffer.bytes.constant();
    }
  }
  return MemoryProfile{plan.arena_bytes.constant() + *std::max_element(held.begin(), held.end()),
                       *std::max_element(alive.begin(), alive.end())};
}

}  // namespace cxxinductor::plan
