#include "schedule/plan/liveness.h"

#include <algorithm>
#include <utility>

#include "ir/callees.h"
#include "ir/live_ranges.h"

namespace cxxinductor::schedule {
namespace {

using loops::BufferId;

class Analysis {
 public:
  Analysis(const loops::Program& program, const std::vector<int>& times, const BufferSlices& slices)
      : slices_(slices), liveness_(program.buffers.size()) {
    for (const auto& [id, slice] : slices) liveness_[id].is_alias = true;
    for (const loops::ProgramInput& input : program.inputs)
      if (input.kind == loops::ProgramInput::Kind::Tensor) liveness_[input.buffer].used = true;
    for (size_t t = 0; t < program.steps.size(); ++t) {
      time_ = times[t];
      std::visit([&](const auto& step) { visit(step); }, program.steps[t]);
    }
    for (const loops::ProgramOutput& output : program.outputs) hand_out(output);
    spread_to_bases();
  }

  IdVector<BufferId, BufferLiveness> take() { return std::move(liveness_); }

 private:
  void touch(BufferId id) {
    BufferLiveness& liveness = liveness_[id];
    liveness.used = true;
    if (liveness.first < 0 || time_ < liveness.first) liveness.first = time_;
    liveness.last = std::max(liveness.last, time_);
    if (const auto slice = slices_.find(id); slice != slices_.end()) touch(slice->second.base);
  }

  void visit(const loops::Region& region) {
    for (const loops::Access& access : accesses(region)) touch(access.buffer);
  }

  void visit(const loops::ExternCall& call) {
    const bool opaque = is_opaque_callee(call.callee);
    for (const auto& operand : call.operands)
      if (const auto* view = std::get_if<loops::View>(&operand)) {
        touch(view->buffer);
        liveness_[view->buffer].escapes |= opaque;
      }
    for (size_t r = 0; r < call.results.size(); ++r) {
      touch(call.results[r]);
      liveness_[call.results[r]].extern_owned = !call.planned_out;
      if (r >= call.alias_of.size() || call.alias_of[r] < 0) continue;
      if (const auto* base = std::get_if<loops::View>(&call.operands[static_cast<size_t>(call.alias_of[r])])) {
        liveness_[call.results[r]].is_alias = true;
        aliases_.emplace_back(call.results[r], base->buffer);
      }
    }
  }

  void hand_out(const loops::ProgramOutput& output) {
    bool is_view = output.kind == loops::ProgramOutput::Kind::View;
    if (!is_view && output.kind != loops::ProgramOutput::Kind::Tensor) return;
    BufferLiveness& liveness = liveness_[is_view ? output.view.buffer : output.buffer];
    liveness.used = liveness.is_output = true;
  }

  // An alias comes after its base, so a backward pass reaches bases of bases.
  void spread_to_bases() {
    for (size_t k = aliases_.size(); k-- > 0;) {
      const BufferLiveness& alias = liveness_[aliases_[k].first];
      BufferLiveness& base = liveness_[aliases_[k].second];
      base.has_alias = true;
      base.last = std::max(base.last, alias.last);
      base.aliased_output = base.aliased_output || alias.is_output || alias.aliased_output;
      base.escapes = base.escapes || alias.escapes;
    }
  }

  const BufferSlices& slices_;
  IdVector<BufferId, BufferLiveness> liveness_;
  std::vector<std::pair<BufferId, BufferId>> aliases_;  // alias, base; in program order
  int time_ = 0;
};

}  // namespace

IdVector<BufferId, BufferLiveness> infer_liveness(const loops::Program& program, const std::vector<int>& times,
                                             const BufferSlices& slices) {
  return Analysis(program, times, slices).take();
}

int64_t bytes_of(const loops::Program& program, BufferId id) {
  const loops::Buffer& buffer = program.buffers[id];
  return bytes_hint(buffer.dtype, buffer.sizes, buffer.strides, program.assumptions);
}

int64_t peak_bytes(const loops::Program& program, const IdVector<BufferId, BufferLiveness>& liveness, int end) {
  IdVector<BufferId, char> kept(program.buffers.size(), 0);
  for (const loops::ProgramInput& input : program.inputs)
    if (input.kind == loops::ProgramInput::Kind::Tensor && !input.donated) kept[input.buffer] = 1;
  std::vector<LiveRange> ranges;
  for (size_t b = 0; b < program.buffers.size(); ++b) {
    const BufferLiveness& life = liveness[BufferId(b)];
    if (life.last < 0 || life.is_alias || kept[BufferId(b)] != 0) continue;
    const bool stays = life.is_output || life.aliased_output;
    const bool input = program.buffers[BufferId(b)].role == loops::Buffer::Role::Input;
    ranges.push_back({bytes_of(program, BufferId(b)), input ? 0 : life.first, stays ? end : life.last});
  }
  return find_peak(ranges).bytes;
}

}  // namespace cxxinductor::schedule
