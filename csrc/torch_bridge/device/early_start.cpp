#include "torch_bridge/device/early_start.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

#include "torch_bridge/device/backing_guard.h"
#include "torch_bridge/device/generator.h"
#include "torch_bridge/device/known_calls.h"
#include "torch_bridge/device/recording.h"

namespace cxxinductor::torch_bridge {
namespace {

constexpr uint32_t most_to_pass = 1024;

// A tensor of that form without memory, whose elements nobody reads.
at::Tensor without_memory(const Form& form) {
  at::Tensor tensor = at::empty({0}, at::TensorOptions(form.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(form.sizes, form.strides, form.offset);
  return tensor;
}

// The number of calls by whose end there are more than `position` of what `count` counts.
template <class Count>
size_t calls_until(const RecordedCalls& calls, size_t position, const Count& count) {
  const auto end = std::partition_point(calls.ends.begin(), calls.ends.end(), [&](const RecordedCalls::End& e) { return count(e) <= position; });
  return static_cast<size_t>(end - calls.ends.begin()) + 1;
}

}  // namespace

std::vector<size_t> known_after(const CallPattern& pattern, const RecordedCalls& calls, size_t integers) {
  const auto& patterns = pattern.arguments();
  const size_t tensors = calls.graph.inputs.size();
  std::vector<size_t> known;
  for (size_t argument = 0; argument < patterns.size(); ++argument) {
    if (!patterns[argument].is_input) continue;
    if (argument < tensors)
      known.push_back(calls_until(calls, calls.graph.inputs[argument], [](const RecordedCalls::End& end) { return end.values; }));
    else if (argument < tensors + integers)
      known.push_back(0);
    else
      known.push_back(calls_until(calls, argument - tensors - integers, [](const RecordedCalls::End& end) { return end.reals; }));
  }
  return known;
}

EarlyForm::EarlyForm(std::shared_ptr<const Specializations::Form> of, const RecordedCalls& calls, const std::vector<size_t>& integer_positions)
    : form(std::move(of)), tensors(calls.graph.inputs.size()), integers(integer_positions.size()) {
  known_after = torch_bridge::known_after(form->pattern, calls, integers);
  const plan::Plan* plan = form->compiled.graph ? form->compiled.graph->plan() : nullptr;
  if (plan == nullptr) return;
  const BackingGuard guard;
  const auto& patterns = form->pattern.arguments();
  for (size_t argument = 0; argument < patterns.size(); ++argument) {
    if (!patterns[argument].is_input) continue;
    arguments.push_back(argument);
    if (argument < tensors)
      unknown.emplace_back(without_memory(calls.values[calls.graph.inputs[argument]].form));
    else if (argument < tensors + integers)
      unknown.emplace_back(calls.code.numbers[integer_positions[argument - tensors]]);
    else
      unknown.emplace_back(0.0);
  }
  if (arguments.size() == plan->inputs.size()) points = early_points(*plan, calls, known_after);
}

c10::Stream EarlyStart::current_stream() const { return c10::impl::VirtualGuardImpl(backing_.type()).getStream(backing_); }

void EarlyStart::turn(bool on) {
  is_on_ = on;
  if (!on) drop();
}

void EarlyStart::expect(std::shared_ptr<KnownCalls> calls) {
  end();
  if (!is_on_) return;
  form_ = calls->early_form();
  if (!form_ || form_->points.empty()) return;
  if (form_->to_pass > 0) {
    form_->to_pass -= 1;
    return;
  }
  calls_ = std::move(calls);
  stream_ = current_stream();
  next_ = form_->points.front().calls;
}

void EarlyStart::end() {
  run_.reset();
  calls_.reset();
  point_ = 0;
  known_ = 0;
  next_ = never;
  before_ = after_ = at::Tensor();
}

void EarlyStart::advance(const Recording& recording) {
  if (recording.expected() != calls_.get()) return drop();
  const std::vector<EarlyPoint>& points = form_->points;
  while (point_ + 1 < points.size() && points[point_ + 1].calls <= recording.size()) ++point_;
  const EarlyPoint& point = points[point_++];
  next_ = point_ < points.size() ? points[point_].calls : never;
  if (current_stream() != *stream_) return;  // of another thread
  const BackingGuard guard;
  if (point.draws && has_drawn() && !has_drawn_last()) {  // what the program draws in between could not be drawn again
    next_ = never;
    return;
  }
  if (point.draws && !has_drawn()) before_ = generator_state(backing_);
  bool failed = false;
  try {
    run_to(point, recording);
  } catch (const std::exception&) {  // it is raised again at the sync point, if it is an error of the program
    failed = true;
  }
  if (point.draws) after_ = generator_state(backing_);
  if (failed) drop();
}

void EarlyStart::run_to(const EarlyPoint& point, const Recording& recording) {
  const size_t recorded = recording.size();
  const auto value_of = [&](size_t argument) -> c10::IValue {
    if (argument < form_->tensors) return recording.input(argument);
    return recording.real(argument - form_->tensors - form_->integers);
  };
  if (!run_) {
    std::vector<c10::IValue> inputs = form_->unknown;
    std::vector<bool> known(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      known[i] = form_->known_after[i] <= recorded;
      if (known[i] && form_->known_after[i] > 0) inputs[i] = value_of(form_->arguments[i]);
    }
    run_ = form_->form->compiled.graph->begin(std::move(inputs), std::move(known));
    if (!run_) {
      next_ = never;
      return;
    }
    starts_ += 1;
  } else {
    for (size_t i = 0; i < form_->known_after.size(); ++i)
      if (known_ < form_->known_after[i] && form_->known_after[i] <= recorded) run_->supply(i, value_of(form_->arguments[i]));
  }
  known_ = recorded;
  run_->advance(point.steps);
}

bool EarlyStart::holds_for(const Specializations::Form& form) {
  if (!run_) return false;
  if (form_->form.get() == &form && current_stream() == *stream_) return true;
  drop();
  return false;
}

std::vector<c10::IValue> EarlyStart::finish(std::vector<c10::IValue> inputs) {
  form_->pass_next = 1;
  const std::unique_ptr<PartialRun> run = std::move(run_);
  end();
  return run->finish(std::move(inputs));
}

void EarlyStart::drop() {
  if (run_) {
    drops_ += 1;
    form_->to_pass = form_->pass_next;
    form_->pass_next = std::min(2 * form_->pass_next, most_to_pass);
    // What it reads may be written next, on another stream.
    if (current_stream() != *stream_) c10::impl::VirtualGuardImpl(backing_.type()).synchronizeStream(*stream_);
    if (has_drawn_last()) set_generator_state(backing_, before_);
  }
  end();
}

bool EarlyStart::has_drawn_last() const { return has_drawn() && at::equal(after_, generator_state(backing_)); }

}  // namespace cxxinductor::torch_bridge
