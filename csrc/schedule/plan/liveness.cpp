#include "schedule/plan/liveness.h"

#include <algorithm>
#include <utility>

#include "ir/callees.h"
#include "ir/live_ranges.h"

namespace cxxinductor::schedule {
namespace {

// Collects what the steps of a program or plan do with buffers.
template <class Id>
class Collector {
 public:
  explicit Collector(size_t buffers) : liveness_(buffers) {}

  void set_time(int time) { time_ = time; }
  BufferLiveness& operator[](Id id) { return liveness_[id]; }
  void touch(Id id) {
    BufferLiveness& liveness = liveness_[id];
    liveness.used = true;
    if (liveness.first < 0 || time_ < liveness.first) liveness.first = time_;
    liveness.last = std::max(liveness.last, time_);
  }
  void hand_out(Id id) { liveness_[id].used = liveness_[id].is_output = true; }
  // In the order of the steps.
  void alias(Id alias, Id base) {
    liveness_[alias].is_alias = true;
    aliases_.emplace_back(alias, base);
  }

  // An alias comes after its base, so a backward pass reaches bases of bases.
  IdVector<Id, BufferLiveness> finish() && {
    for (size_t k = aliases_.size(); k-- > 0;) {
      const BufferLiveness& alias = liveness_[aliases_[k].first];
      BufferLiveness& base = liveness_[aliases_[k].second];
      base.has_alias = true;
      base.last = std::max(base.last, alias.last);
      base.aliased_output = base.aliased_output || alias.is_output || alias.aliased_output;
      base.escapes = base.escapes || alias.escapes;
    }
    return std::move(liveness_);
  }

 private:
  IdVector<Id, BufferLiveness> liveness_;
  std::vector<std::pair<Id, Id>> aliases_;  // alias, base
  int time_ = 0;
};

// Call: loops::ExternCall or plan::CallExtern, whose operands are views of type View. touch: of a buffer and its bases.
template <class View, class Call, class Id, class Touch>
void visit_call(const Call& call, Collector<Id>& found, Touch touch) {
  const bool opaque = is_opaque_callee(call.callee);
  for (const auto& operand : call.operands)
    if (const auto* view = std::get_if<View>(&operand)) {
      touch(view->buffer);
      found[view->buffer].escapes |= opaque;
    }
  for (size_t r = 0; r < call.results.size(); ++r) {
    touch(call.results[r]);
    found[call.results[r]].extern_owned = !call.planned_out;
    if (r >= call.alias_of.size() || call.alias_of[r] < 0) continue;
    if (const auto* base = std::get_if<View>(&call.operands[static_cast<size_t>(call.alias_of[r])])) found.alias(call.results[r], base->buffer);
  }
}

template <class Output, class Id>
void visit_outputs(const std::vector<Output>& outputs, Collector<Id>& found) {
  for (const Output& output : outputs) {
    if (output.kind == Output::Kind::Tensor) found.hand_out(output.buffer);
    if (output.kind == Output::Kind::View) found.hand_out(output.view.buffer);
  }
}

}  // namespace

IdVector<loops::BufferId, BufferLiveness> infer_liveness(const loops::Program& program, const std::vector<int>& times, const BufferSlices& slices) {
  Collector<loops::BufferId> found(program.buffers.size());
  const auto touch = [&](loops::BufferId id) {
    found.touch(id);
    for (auto slice = slices.find(id); slice != slices.end(); slice = slices.find(slice->second.base)) found.touch(slice->second.base);
  };
  for (const auto& [id, slice] : slices) found[id].is_alias = true;
  for (const loops::ProgramInput& input : program.inputs)
    if (input.kind == loops::ProgramInput::Kind::Tensor) found[input.buffer].used = true;
  for (size_t t = 0; t < program.steps.size(); ++t) {
    found.set_time(times[t]);
    if (const auto* region = std::get_if<loops::Region>(&program.steps[t]))
      for (const loops::Access& access : accesses(*region)) touch(access.buffer);
    else
      visit_call<loops::View>(std::get<loops::ExternCall>(program.steps[t]), found, touch);
  }
  visit_outputs(program.outputs, found);
  return std::move(found).finish();
}

bool computes(const plan::Step& step) {
  return !std::holds_alternative<plan::Allocate>(step) && !std::holds_alternative<plan::Free>(step) && !std::holds_alternative<plan::Reuse>(step);
}

IdVector<plan::BufferId, BufferLiveness> infer_liveness(const plan::Plan& plan) {
  Collector<plan::BufferId> found(plan.buffers.size());
  const auto touch = [&](plan::BufferId id) {
    found.touch(id);
    for_each_base(plan, id, [&](plan::BufferId base) { found.touch(base); });
  };
  for (size_t b = 0; b < plan.buffers.size(); ++b)
    if (plan.buffers[plan::BufferId(b)].kind == plan::Buffer::Kind::Slice) found[plan::BufferId(b)].is_alias = true;
  for (const plan::Input& input : plan.inputs)
    if (input.kind == plan::Input::Kind::Tensor) found[input.buffer].used = true;
  int time = 0;
  for (const plan::Step& step : plan.steps) {
    if (!computes(step)) continue;
    found.set_time(time++);
    for (const plan::Launch& launch : launches_of(step))
      for (plan::BufferId arg : launch.args) touch(arg);
    if (const auto* call = std::get_if<plan::CallExtern>(&step)) visit_call<plan::View>(*call, found, touch);
    if (const auto* read = std::get_if<plan::ReadScalar>(&step)) touch(read->from.buffer);
  }
  visit_outputs(plan.outputs, found);
  return std::move(found).finish();
}

int64_t bytes_of(const loops::Program& program, loops::BufferId id) {
  const loops::Buffer& buffer = program.buffers[id];
  return bytes_hint(buffer.dtype, buffer.sizes, buffer.strides, program.assumptions);
}

DevicePeaks find_peaks(const loops::Program& program, const IdVector<loops::BufferId, BufferLiveness>& liveness, int end) {
  IdVector<loops::BufferId, char> kept(program.buffers.size(), 0);
  for (const loops::ProgramInput& input : program.inputs)
    if (input.kind == loops::ProgramInput::Kind::Tensor && !input.donated) kept[input.buffer] = 1;
  DeviceRanges ranges;
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const BufferLiveness& life = liveness[loops::BufferId(b)];
    if (life.last < 0 || life.is_alias || kept[loops::BufferId(b)] != 0) continue;
    const bool stays = life.is_output || life.aliased_output;
    const loops::Buffer& buffer = program.buffers[loops::BufferId(b)];
    const bool input = buffer.role == loops::Buffer::Role::Input;
    ranges[buffer.device].push_back({bytes_of(program, loops::BufferId(b)), input ? 0 : life.first, stays ? end : life.last});
  }
  return find_peaks(ranges);
}

}  // namespace cxxinductor::schedule
