#include "schedule/plan/lifetimes.h"

#include <algorithm>
#include <utility>

namespace cxxinductor::schedule {
namespace {

using loops::BufferId;

class Analysis {
 public:
  Analysis(const loops::Program& program, const std::vector<int>& times) : lifetimes_(program.buffers.size()) {
    for (const loops::ProgramInput& input : program.inputs)
      if (input.kind == loops::ProgramInput::Kind::Tensor) lifetimes_[input.buffer].used = true;
    for (size_t t = 0; t < program.steps.size(); ++t) {
      time_ = times[t];
      std::visit([&](const auto& step) { visit(step); }, program.steps[t]);
    }
    for (const loops::ProgramOutput& output : program.outputs) hand_out(output);
    spread_to_bases();
  }

  IdVector<BufferId, Lifetime> take() { return std::move(lifetimes_); }

 private:
  void touch(BufferId id) {
    Lifetime& lifetime = lifetimes_[id];
    lifetime.used = true;
    if (lifetime.first < 0 || time_ < lifetime.first) lifetime.first = time_;
    lifetime.last = std::max(lifetime.last, time_);
  }

  void visit(const loops::Region& region) {
    for (const loops::Access& access : accesses(region)) touch(access.buffer);
  }

  void visit(const loops::ExternCall& call) {
    for (const auto& operand : call.operands)
      if (const auto* view = std::get_if<loops::View>(&operand)) touch(view->buffer);
    for (size_t r = 0; r < call.results.size(); ++r) {
      touch(call.results[r]);
      lifetimes_[call.results[r]].extern_owned = !call.planned_out;
      if (r >= call.alias_of.size() || call.alias_of[r] < 0) continue;
      if (const auto* base = std::get_if<loops::View>(&call.operands[static_cast<size_t>(call.alias_of[r])])) {
        lifetimes_[call.results[r]].is_alias = true;
        aliases_.emplace_back(call.results[r], base->buffer);
      }
    }
  }

  void hand_out(const loops::ProgramOutput& output) {
    bool is_view = output.kind == loops::ProgramOutput::Kind::View;
    if (!is_view && output.kind != loops::ProgramOutput::Kind::Tensor) return;
    Lifetime& lifetime = lifetimes_[is_view ? output.view.buffer : output.buffer];
    lifetime.used = lifetime.is_output = true;
  }

  // An alias is made after its base, so that going backwards reaches bases of bases.
  void spread_to_bases() {
    for (size_t k = aliases_.size(); k-- > 0;) {
      const Lifetime& alias = lifetimes_[aliases_[k].first];
      Lifetime& base = lifetimes_[aliases_[k].second];
      base.has_alias = true;
      base.last = std::max(base.last, alias.last);
      base.aliased_output = base.aliased_output || alias.is_output || alias.aliased_output;
    }
  }

  IdVector<BufferId, Lifetime> lifetimes_;
  std::vector<std::pair<BufferId, BufferId>> aliases_;  // alias, base; in program order
  int time_ = 0;
};

}  // namespace

IdVector<BufferId, Lifetime> infer_lifetimes(const loops::Program& program, const std::vector<int>& times) {
  return Analysis(program, times).take();
}

}  // namespace cxxinductor::schedule
