#include "torch_bridge/device/early_steps.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <map>
#include <optional>

#include "ir/live_ranges.h"
#include "ir/plan/memory.h"
#include "model/call_graph.h"

namespace cxxinductor::torch_bridge {
namespace {

bool draws_numbers(const std::string& callee, const std::string& overload) {
  const auto op = c10::Dispatcher::singleton().findSchema({callee, overload});
  return !op || op->hasTag(at::Tag::nondeterministic_seeded);
}

size_t first_random_call(const RecordedCalls& calls) {
  const auto& all = calls.graph.calls;
  return static_cast<size_t>(std::find_if(all.begin(), all.end(), [](const model::Call& call) { return draws_numbers(call.callee, call.overload); }) -
                             all.begin());
}

// By call: the most bytes that eager has held by its end, on all devices.
std::vector<int64_t> held_by_eager(const RecordedCalls& calls) {
  const auto& all = calls.graph.calls;
  std::vector<size_t> last_use(calls.values.size(), 0);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto touch = [&](model::CallValue value) { last_use[calls.values[value].memory] = i; };
    for_each_operand_ref(all[i], [&](OperandRef ref) { touch(ref.operand); });
    for (const model::CallValue result : all[i].results) touch(result);
  }
  std::vector<int64_t> bytes(calls.values.size(), 0), freed(all.size() + 1, 0), most;
  int64_t held = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    held -= i == 0 ? 0 : freed[i - 1];
    for (const model::CallValue result : all[i].results) {
      const RecordedCalls::Value& value = calls.values[result];
      if (value.is_none || value.number || value.memory != result) continue;
      const int64_t allocates = allocated(bytes_of(value.form));
      held += allocates;
      freed[last_use[result]] += allocates;
    }
    most.push_back(std::max(most.empty() ? 0 : most.back(), held));
  }
  return most;
}

class EarlySteps {
 public:
  EarlySteps(const plan::Plan& plan, const RecordedCalls& calls, const std::vector<size_t>& known_after)
      : plan_(plan),
        arenas_(plan::arenas_by_first_use(plan)),
        eager_(held_by_eager(calls)),
        first_random_(first_random_call(calls)),
        input_of_(plan.buffers.size()),
        known_after_(known_after) {
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
      if (plan.inputs[i].kind != plan::Input::Kind::Tensor) continue;
      const size_t buffer = plan.inputs[i].buffer.index();
      input_of_[buffer] = i;
      if (plan.inputs[i].donated) kept_[buffer] = size_of(plan.inputs[i].buffer);
    }
    for (size_t step = 0; step < plan.steps.size(); ++step) for_each_buffer(plan.steps[step], [&](plan::BufferId b) { last_use_[b.index()] = step; });
  }

  std::vector<EarlyPoint> find() {
    std::vector<EarlyPoint> points;
    bool draws = false;
    for (size_t step = 0; step < plan_.steps.size(); ++step) {
      if (!may_run(plan_.steps[step])) break;
      for_each_buffer(plan_.steps[step], [&](plan::BufferId b) {
        if (const auto input = input_of_[b.index()]) needed_ = std::max(needed_, known_after_[*input]);
      });
      if (is_random(plan_.steps[step])) {
        draws = true;
        needed_ = std::max(needed_, first_random_ + 1);
      }
      if (!hold(step)) break;
      if (points.empty() || points.back().calls < needed_) points.push_back({needed_, 0, draws});
      points.back().steps = step + 1;
      points.back().draws = draws;
    }
    std::erase_if(points, [&](const EarlyPoint& point) { return !computes(point.steps); });
    return points;
  }

 private:
  template <class Visit>
  static void for_each_buffer(const plan::Step& step, const Visit& visit) {
    if (const auto* reuse = std::get_if<plan::Reuse>(&step)) visit(reuse->from);
    for (const plan::Launch& launch : plan::launches_of(step))
      for (const plan::BufferId arg : launch.args) visit(arg);
    if (const auto* call = std::get_if<plan::CallExtern>(&step))
      for (const auto& operand : call->operands)
        if (const auto* view = std::get_if<plan::View>(&operand)) visit(view->buffer);
  }

  int64_t size_of(plan::BufferId buffer) const { return bytes_hint(plan_.buffers[buffer].bytes, plan_.assumptions); }
  bool is_of_input(plan::BufferId buffer) const { return input_of_[buffer.index()].has_value(); }

  bool is_random(const plan::Step& step) const {
    const auto* call = std::get_if<plan::CallExtern>(&step);
    return call != nullptr && draws_numbers(call->callee, call->overload);
  }

  // What shows an input's memory is that input from here on.
  void follow_aliases(const plan::CallExtern& call) {
    for (size_t r = 0; r < call.results.size() && r < call.alias_of.size(); ++r) {
      if (call.alias_of[r] < 0 || !call.results[r].valid()) continue;
      const auto* view = std::get_if<plan::View>(&call.operands[static_cast<size_t>(call.alias_of[r])]);
      if (view != nullptr) input_of_[call.results[r].index()] = input_of_[view->buffer.index()];
    }
  }

  bool may_run(const plan::Step& step) {
    if (std::holds_alternative<plan::ReadScalar>(step) || std::holds_alternative<plan::Assert>(step)) return false;
    if (const auto* reuse = std::get_if<plan::Reuse>(&step)) return !is_of_input(reuse->from);
    for (const plan::Launch& launch : plan::launches_of(step))
      for (size_t i = 0; i < launch.args.size(); ++i)
        if (plan_.kernels[launch.kernel].params[i].written && is_of_input(launch.args[i])) return false;
    if (const auto* call = std::get_if<plan::CallExtern>(&step)) {
      if (!call->defines.empty() || !c10::Dispatcher::singleton().findSchema({call->callee, call->overload})) return false;
      for (const uint32_t operand : call->mutated_operands)
        if (const auto* view = std::get_if<plan::View>(&call->operands[operand]); view == nullptr || is_of_input(view->buffer)) return false;
      for (const plan::BufferId result : call->results)
        if (result.valid() && is_of_input(result)) return false;
      follow_aliases(*call);
    }
    return true;
  }

  // Adds what the step allocates, and waits with it for the call by which eager holds as much. False: it never does.
  bool hold(size_t number) {
    const plan::Step& step = plan_.steps[number];
    for (const uint32_t arena : arenas_[number]) held_ += allocated(bytes_hint(plan_.arenas[arena].bytes, plan_.assumptions));
    if (const auto* allocate = std::get_if<plan::Allocate>(&step)) held_ += allocated(size_of(allocate->buffer));
    if (const auto* free = std::get_if<plan::Free>(&step)) held_ -= allocated(size_of(free->buffer));
    if (const auto* call = std::get_if<plan::CallExtern>(&step); call != nullptr && !call->planned_out)
      for (size_t r = 0; r < call->results.size(); ++r) {
        const bool is_alias = r < call->alias_of.size() && call->alias_of[r] >= 0;
        if (call->results[r].valid() && !is_alias) held_ += allocated(size_of(call->results[r]));
      }
    for_each_buffer(step, [&](plan::BufferId b) {
      if (last_use_[b.index()] != number) return;
      if (const auto kept = kept_.find(b.index()); kept != kept_.end()) beyond_plan_ += std::exchange(kept->second, 0);
    });
    const int64_t holds = held_ + beyond_plan_;
    const auto call = std::lower_bound(eager_.begin(), eager_.end(), holds);
    if (call == eager_.end()) return false;
    if (holds > 0) needed_ = std::max(needed_, static_cast<size_t>(call - eager_.begin()) + 1);
    return true;
  }

  bool computes(size_t steps) const {
    return std::any_of(plan_.steps.begin(), plan_.steps.begin() + static_cast<std::ptrdiff_t>(steps),
                       [](const plan::Step& step) { return !plan::launches_of(step).empty() || std::holds_alternative<plan::CallExtern>(step); });
  }

  const plan::Plan& plan_;
  const std::vector<std::vector<uint32_t>> arenas_;
  const std::vector<int64_t> eager_;
  const size_t first_random_;
  std::vector<std::optional<size_t>> input_of_;  // by buffer: the input whose memory it is
  const std::vector<size_t>& known_after_;
  std::map<size_t, int64_t> kept_;  // by buffer: bytes of donated inputs, which the recording keeps until it ends
  std::map<size_t, size_t> last_use_;
  size_t needed_ = 0;  // calls, for the steps so far
  // Bytes after the steps so far: what they allocated, and donated inputs that the plan would have freed.
  int64_t held_ = 0, beyond_plan_ = 0;
};

}  // namespace

std::vector<uint32_t> late_inputs(const std::vector<size_t>& known_after, size_t calls) {
  std::vector<size_t> sorted = known_after;
  std::sort(sorted.begin(), sorted.end());
  size_t longest = calls / 8, start = calls;
  for (size_t i = 0; i + 1 < sorted.size(); ++i)
    if (sorted[i + 1] - sorted[i] > longest) longest = sorted[i + 1] - sorted[i], start = sorted[i];
  std::vector<uint32_t> late;
  for (size_t i = 0; i < known_after.size(); ++i)
    if (known_after[i] > start) late.push_back(static_cast<uint32_t>(i));
  return late;
}

std::vector<EarlyPoint> early_points(const plan::Plan& plan, const RecordedCalls& calls, const std::vector<size_t>& known_after) {
  return EarlySteps(plan, calls, known_after).find();
}

}  // namespace cxxinductor::torch_bridge
