#include "torch_bridge/device/recording.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/List.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <string_view>
#include <utility>

#include "support/error.h"
#include "torch_bridge/device/generator.h"
#include "torch_bridge/record/make_call.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {
namespace {

using model::CallValueInfo;

constinit std::atomic<uint64_t> recordings{0};

constexpr size_t least_inputs_to_check = 64;

// Eager refuses most writes to it.
bool repeats_elements(const at::Tensor& tensor) {
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (tensor.stride(d) == 0 && tensor.size(d) > 1) return true;
  return false;
}

// Eager refuses to write to memory that another operand shows, but for ops by element on the very same elements.
bool may_refuse_overlap(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  const auto is_tensor = [](const c10::IValue& value) { return value.isTensor() && value.toTensor().defined(); };
  for (size_t w = 0; w < arguments.size(); ++w) {
    if (!info.is_written[w] || !is_tensor(arguments[w])) continue;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (i == w || !is_tensor(arguments[i]) || buffer_of(arguments[i].toTensor()) != buffer_of(arguments[w].toTensor())) continue;
      const at::MemOverlapStatus status = at::get_overlap_status(arguments[w].toTensor(), arguments[i].toTensor());
      if (status == at::MemOverlapStatus::Partial || (status == at::MemOverlapStatus::Full && info.reads_settings)) return true;
    }
  }
  return false;
}

bool is_real_tensor(const at::Tensor& tensor) { return tensor.defined() && buffer_of(tensor) != nullptr; }

CallValueInfo info_of(const RecordedCalls::Value& value, c10::Device device) {
  CallValueInfo info;
  info.dtype = from_torch(value.form.dtype);
  info.device = from_torch(device);
  info.sizes.assign(value.form.sizes.begin(), value.form.sizes.end());
  info.strides.assign(value.form.strides.begin(), value.form.strides.end());
  info.storage_offset = value.form.offset;
  info.storage = value.memory + 1;
  return info;
}

// None where the metadata depends on elements.
std::optional<Form> known_form(const CallValueInfo& info) {
  Form form{to_torch(info.dtype), 0, {}, {}};
  if (!info.storage_offset.is_constant()) return std::nullopt;
  form.offset = info.storage_offset.constant();
  for (sym::Expr size : info.sizes) {
    if (!size.is_constant()) return std::nullopt;
    form.sizes.push_back(size.constant());
  }
  for (sym::Expr stride : info.strides) {
    if (!stride.is_constant()) return std::nullopt;
    form.strides.push_back(stride.constant());
  }
  return form;
}

// Sizes are numbers, so that everything is known.
class NumberSizes final : public model::SizeQuestions {
 public:
  bool are_equal(sym::Expr a, sym::Expr b) override { return a == b; }
  bool is_less(sym::Expr a, sym::Expr b) override { return a.is_constant() && b.is_constant() && a.constant() < b.constant(); }
};

std::vector<int64_t> numbers_of(c10::IntArrayRef numbers) { return numbers.vec(); }

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

Recording::Recording(c10::Device device, c10::Device backing, OpTable& ops, LostRecordings lost) : device_(device), backing_(backing), lost_(lost), ops_(ops) {
  start();
}

LostRecordings Recording::lost_from(uint64_t first) const {
  return {lost_.first < lost_.end ? lost_.first : first, recordings.load(std::memory_order_relaxed) + 1};
}

std::string Recording::failure_of(const Buffer& buffer) const {
  if (buffer.recording < lost_.first || buffer.recording >= lost_.end) return buffer.failure;
  return "a tensor of the recorded device has no elements in this process: when it was forked, another thread recorded or ran calls on the tensor";
}

void Recording::start() {
  number_ = recordings.fetch_add(1, std::memory_order_relaxed) + 1;
  expected_ = nullptr;
  own_ = {};
  count_ = 0;
  values_ = 0;
  reals_.clear();
  clear_pending();
  inputs_.clear();
  created_.clear();
  inputs_to_check_ = least_inputs_to_check;
  random_state_ = at::Tensor();
  writes_ = false;
}

std::optional<uint32_t> Recording::known_value(const Buffer& buffer, const at::Tensor& tensor) const {
  if (buffer.recording != number_) return std::nullopt;
  if (shows(tensor, buffer.base)) return buffer.value;
  for (const auto& [form, value] : buffer.views)
    if (shows(tensor, form)) return value;
  return std::nullopt;
}

// The value of a tensor of this device that need_operands has seen.
uint32_t Recording::value_of(const at::Tensor& tensor) {
  if (const Buffer* buffer = buffer_of(tensor)) return known_value(*buffer, tensor).value();
  return value_of_scalar(tensor);
}

uint32_t Recording::value_of_scalar(const at::Tensor& tensor) {
  for (const auto& [scalar, value] : scalars_)
    if (scalar == tensor.unsafeGetTensorImpl()) return value;
  throw_internal("a scalar has no value");
}

void Recording::add_own_input(const Input& input) {
  own_.values.push_back(input.info);
  own_.graph.values.push_back(info_of(input.info, input.device));
  own_.graph.inputs.push_back(input.value);
  own_.graph.input_sources.emplace_back();
}

void Recording::add_input(Input input) {
  input.value = values_++;
  input.info.memory = input.value;
  const Form& form = input.info.form;
  pending_.words.push_back(input.device == backing_ ? CodeWord::Input : CodeWord::CpuInput);
  pending_.words.push_back(static_cast<int64_t>(form.dtype));
  pending_.words.push_back(static_cast<int64_t>(form.sizes.size()));
  pending_.numbers.insert(pending_.numbers.end(), form.sizes.begin(), form.sizes.end());
  pending_.numbers.insert(pending_.numbers.end(), form.strides.begin(), form.strides.end());
  input_words_ = pending_.words.size();
  input_numbers_ = pending_.numbers.size();
  if (!follows()) add_own_input(input);
  inputs_.push_back(std::move(input));
}

// The buffer gets a value for its base: as an input, or as memory that nobody has written to.
void Recording::enter(Buffer& buffer, const at::Tensor& tensor) {
  if (const std::string failure = failure_of(buffer); !failure.empty()) throw std::runtime_error(failure);
  if (buffer.base.dtype != tensor.scalar_type()) rebase(buffer, tensor.scalar_type());
  from_torch(buffer.base.dtype);
  if (buffer.backing.defined()) {
    Input input;
    input.info.form = buffer.base;
    input.device = backing_;
    input.tensor = buffer.backing;
    input.buffer = c10::weak_intrusive_ptr<Buffer>(BufferPtr::reclaim_copy(&buffer));
    add_input(std::move(input));
    buffer.value = inputs_.back().value;
    buffer.recording = number_;
    buffer.views.clear();
    return;
  }
  const auto empty_strided = c10::Dispatcher::singleton().findSchemaOrThrow("aten::empty_strided", "");
  torch::jit::Stack stack;
  torch::jit::push(stack, numbers_of(buffer.base.sizes), numbers_of(buffer.base.strides), buffer.base.dtype, c10::kStrided, device_, false);
  into_ = &buffer;
  const bool recorded = record_first(ops_.of(empty_strided), stack);
  into_ = nullptr;
  if (!recorded) throw_unsupported("a tensor of dtype {}", c10::toString(buffer.base.dtype));
}

// Before the call at hand, whose operand it makes.
bool Recording::record_first(const OpInfo& info, torch::jit::Stack stack) {
  const auto scalars = std::exchange(scalars_, {});
  const bool recorded = record(info, stack);
  scalars_ = scalars;
  return recorded;
}

// Gives values to the tensors of an argument.
void Recording::need_operands(const c10::IValue& argument) {
  if (argument.isList()) {
    if (argument.isTensorList() || argument.isOptionalTensorList())
      for (const c10::IValue& item : argument.toListRef()) need_operands(item);
    return;
  }
  if (!argument.isTensor() || !argument.toTensor().defined()) return;
  const at::Tensor& tensor = argument.toTensor();
  Buffer* buffer = buffer_of(tensor);
  if (buffer == nullptr) {
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return;
    if (tensor.dim() != 0 || !tensor.is_cpu()) throw_unsupported("a tensor on {}", tensor.device().str());
    Input input;
    input.info.form = form_of(tensor);
    input.info.form.offset = 0;
    input.tensor = tensor.clone();
    add_input(std::move(input));
    scalars_.emplace_back(tensor.unsafeGetTensorImpl(), inputs_.back().value);
    return;
  }
  if (buffer->index != device_.index()) throw_unsupported("a tensor on {}", tensor.device().str());
  if (tensor.is_conj() || tensor.is_neg()) throw_unsupported("a conjugated or negated view");
  if (buffer->recording != number_) enter(*buffer, tensor);
  if (known_value(*buffer, tensor)) return;
  if (buffer->base.dtype != tensor.scalar_type()) throw_unsupported("memory that is shown in two dtypes");
  const auto as_strided = c10::Dispatcher::singleton().findSchemaOrThrow("aten::as_strided", "");
  torch::jit::Stack stack;
  torch::jit::push(stack, make_device_view(tensor, buffer->base), numbers_of(tensor.sizes()), numbers_of(tensor.strides()), tensor.storage_offset());
  if (!record_first(ops_.of(as_strided), stack)) throw_unsupported("a view of strides {}", c10::str(tensor.strides()));
}

void Recording::encode(const c10::IValue& value, bool is_enum) {
  std::vector<int64_t>& words = pending_.words;
  if (value.isNone()) {
    words.push_back(CodeWord::None);
  } else if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (!tensor.defined()) {
      words.push_back(CodeWord::None);
    } else if (!is_real_tensor(tensor) && tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      words.push_back(CodeWord::Scalar);
      encode(c10::IValue(tensor.item()), false);
    } else {
      words.push_back(CodeWord::Operand);
      words.push_back(value_of(tensor));
    }
  } else if (value.isInt()) {
    words.push_back(is_enum ? CodeWord::Enum : CodeWord::Integer);
    (is_enum ? words : pending_.numbers).push_back(value.toInt());
  } else if (value.isBool()) {
    words.push_back(CodeWord::Bool);
    words.push_back(value.toBool() ? 1 : 0);
  } else if (value.isDouble()) {
    words.push_back(CodeWord::Real);
    pending_.reals.push_back(value.toDouble());
  } else if (value.isComplexDouble()) {
    words.push_back(CodeWord::Complex);
    words.push_back(std::bit_cast<int64_t>(value.toComplexDouble().real()));
    words.push_back(std::bit_cast<int64_t>(value.toComplexDouble().imag()));
  } else if (value.isDevice()) {
    words.push_back(CodeWord::DeviceWord);
  } else if (value.isString()) {
    const std::string& text = value.toStringRef();
    words.push_back(CodeWord::Text);
    words.push_back(static_cast<int64_t>(text.size()));
    words.insert(words.end(), text.begin(), text.end());
  } else if (value.isIntList()) {
    const auto list = value.toIntList();
    words.push_back(CodeWord::Integers);
    words.push_back(static_cast<int64_t>(list.size()));
    for (const int64_t item : list) pending_.numbers.push_back(item);
  } else if (value.isList()) {
    const auto items = value.toListRef();
    words.push_back(CodeWord::List);
    words.push_back(static_cast<int64_t>(items.size()));
    for (const c10::IValue& item : items) encode(item, is_enum);
  } else {
    throw_unsupported("arguments of type {}", value.tagKind());
  }
}

void Recording::encode(const OpInfo& info, const torch::jit::Stack& stack) {
  pending_.words.push_back(CodeWord::Call);
  pending_.words.push_back(std::bit_cast<int64_t>(&info));
  const auto arguments = torch::jit::last(stack, info.is_enum.size());
  for (size_t i = 0; i < arguments.size(); ++i) encode(arguments[i], info.is_enum[i]);
}

// Of the call at hand, where the recording follows another one.
bool Recording::is_expected() {
  const RecordedCalls& expected = expected_->calls;
  if (count_ >= expected.ends.size()) return false;
  const size_t words = pending_.words.size();
  if (expected.ends[count_].has_fixed_reals) fix_reals();
  const bool is_equal = is_next(expected);
  if (!is_equal) pending_.words.resize(words);
  return is_equal;
}

bool Recording::is_next(const RecordedCalls& expected) const {
  const RecordedCalls::End start = count_ == 0 ? RecordedCalls::End{} : expected.ends[count_ - 1];
  const RecordedCalls::End end = expected.ends[count_];
  const auto equal = [](const std::vector<int64_t>& all, size_t from, size_t to, const std::vector<int64_t>& given) {
    return to - from == given.size() && std::equal(given.begin(), given.end(), all.begin() + static_cast<std::ptrdiff_t>(from));
  };
  return equal(expected.code.words, start.words, end.words, pending_.words) && equal(expected.code.numbers, start.numbers, end.numbers, pending_.numbers);
}

// The floats of the call at hand are words too.
void Recording::fix_reals() {
  pending_.words.push_back(CodeWord::FixedReals);
  pending_.words.push_back(static_cast<int64_t>(pending_.reals.size()));
  for (const double real : pending_.reals) pending_.words.push_back(std::bit_cast<int64_t>(real));
}

// The call at hand is not the expected one: the calls so far become this recording's own, with the inputs since.
void Recording::diverge() {
  if (!follows()) return;
  own_ = expected_->calls.prefix(count_, std::move(reals_));
  expected_ = nullptr;
  const size_t known = own_.values.size();
  for (const Input& input : inputs_)
    if (input.value >= known) add_own_input(input);
}

// Whether the metadata of the call's results depends on its floats, as that of a range does: nothing states it without.
bool Recording::reals_decide(const OpInfo& info, const model::Call& call) {
  if (pending_.reals.empty()) return false;
  const auto unknown = static_cast<uint32_t>(own_.graph.values.size());
  own_.graph.values.emplace_back().kind = CallValueInfo::Kind::SymFloat;
  std::vector<model::Call> calls{call};
  bool decide = true;
  try {
    for_each_number(
        pending_, calls, [](size_t, const NumberSlot&) {}, [&](size_t, const NumberSlot& slot) { slot.set(Arg(OperandRef{unknown})); });
    NumberSizes sizes;
    decide = !info.rule->infer(own_.graph, calls.front(), sizes);
  } catch (const Error&) {  // of a rule that reads one of them
  }
  own_.graph.values.pop_back();
  return decide;
}

bool Recording::infer(const OpInfo& info, const torch::jit::Stack& stack) {
  torch::jit::Stack arguments = torch::jit::last(stack, info.is_enum.size()).vec();
  for (c10::IValue& argument : arguments)
    if (argument.isDevice()) argument = backing_;
  model::Call call = make_call(info.op, arguments, [this](const at::Tensor& tensor) -> Arg { return OperandRef{value_of(tensor)}; });
  NumberSizes sizes;
  auto results = info.rule->infer(own_.graph, call, sizes);
  if (!results) return false;
  const bool has_fixed_reals = reals_decide(info, call);
  std::vector<RecordedCalls::Value> values;
  for (const CallValueInfo& result : *results) {
    RecordedCalls::Value value;
    const auto id = static_cast<uint32_t>(own_.values.size() + values.size());
    value.is_none = result.kind == CallValueInfo::Kind::None;
    if (result.kind == CallValueInfo::Kind::SymInt && result.symbol.is_constant()) {
      value.number = result.symbol.constant();
    } else if (!value.is_none) {
      if (result.kind != CallValueInfo::Kind::Tensor || result.conjugate || result.negative) return false;
      auto form = known_form(result);
      if (!form) return false;
      value.form = std::move(*form);
      const bool is_alias = info.is_alias[info.returns_list ? 0 : values.size()];
      value.memory = is_alias && result.storage != 0 ? result.storage - 1 : id;
      if (value.memory != id && bytes_of(value.form) > bytes_of(own_.values[value.memory].form))
        throw_unsupported("{}: it shows memory behind its tensor's", info.name);
    }
    values.push_back(std::move(value));
  }
  call.result_is_list = info.returns_list;
  for (size_t i = 0; i < values.size(); ++i) {
    CallValueInfo& result = (*results)[i];
    if (!values[i].is_none && !values[i].number) result.storage = values[i].memory + 1;
    call.results.push_back(static_cast<uint32_t>(own_.values.size()));
    own_.values.push_back(std::move(values[i]));
    own_.graph.values.push_back(std::move(result));
  }
  own_.graph.calls.push_back(std::move(call));
  if (has_fixed_reals) fix_reals();
  append(own_.code.words, pending_.words);
  append(own_.code.numbers, pending_.numbers);
  append(own_.code.reals, pending_.reals);
  own_.ends.push_back({own_.code.words.size(), own_.code.numbers.size(), own_.code.reals.size(), own_.values.size(), has_fixed_reals});
  return true;
}

// The tensor of a result that is not an argument.
at::Tensor Recording::result(uint32_t value, c10::ArrayRef<c10::IValue> arguments) {
  const RecordedCalls::Value& info = calls().values[value];
  if (info.is_none) return {};
  if (info.memory == value) {
    auto buffer = c10::make_intrusive<Buffer>(device_.index(), info.form);
    Buffer* target = into_ != nullptr ? into_ : buffer.get();
    target->recording = number_;
    target->value = value;
    target->views.clear();
    c10::raw::weak_intrusive_ptr::incref(target);
    created_.push_back({value, c10::weak_intrusive_ptr<Buffer>::reclaim(target)});
    return into_ != nullptr ? at::Tensor() : make_device_tensor(make_storage(std::move(buffer)), info.form);
  }
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor())
      if (at::Tensor view = view_of(argument.toTensor(), value); view.defined()) return view;
    if (argument.isTensorList())
      for (const c10::IValue& item : argument.toListRef())
        if (at::Tensor view = view_of(item.toTensor(), value); view.defined()) return view;
  }
  return {};
}

// The tensor of a value that shows the memory of this argument; undefined where it shows another's.
at::Tensor Recording::view_of(const at::Tensor& argument, uint32_t value) {
  const RecordedCalls::Value& info = calls().values[value];
  Buffer* buffer = buffer_of(argument);
  if (buffer == nullptr || buffer->recording != number_ || buffer->value != info.memory) return {};
  at::Tensor view = make_device_view(argument, info.form);
  if (!known_value(*buffer, view)) buffer->views.emplace_back(info.form, value);
  return view;
}

// They replace the arguments on the stack, below which there may be others' values.
void Recording::push_results(const OpInfo& info, torch::jit::Stack& stack) {
  const size_t count_of_arguments = info.is_enum.size();
  const auto arguments = torch::jit::last(stack, count_of_arguments);
  const auto count = calls().ends[count_].values - values_;
  const uint32_t first = std::exchange(values_, values_ + static_cast<uint32_t>(count));
  c10::SmallVector<c10::IValue, 4> results;
  if (info.returns_list) {
    c10::List<at::Tensor> list;
    for (size_t i = 0; i < count; ++i) list.push_back(result(first + static_cast<uint32_t>(i), arguments));
    results.emplace_back(std::move(list));
  } else {
    for (size_t i = 0; i < count; ++i) {
      const int written = info.written_argument[i];
      const auto value = first + static_cast<uint32_t>(i);
      if (const auto number = calls().values[value].number)
        results.emplace_back(*number);
      else
        results.emplace_back(written >= 0 ? arguments[static_cast<size_t>(written)].toTensor() : result(value, arguments));
    }
  }
  torch::jit::drop(stack, count_of_arguments);
  for (c10::IValue& made : results) stack.push_back(std::move(made));
}

// The results are on a device of another kind.
bool Recording::goes_elsewhere(const OpInfo& info, const torch::jit::Stack& stack) {
  if (info.device_argument < 0) return false;
  const c10::IValue& device = torch::jit::peek(stack, static_cast<size_t>(info.device_argument), info.is_enum.size());
  return device.isDevice() && device.toDevice().type() != c10::DeviceType::PrivateUse1;
}

void Recording::clear_pending() {
  pending_.clear();
  input_words_ = input_numbers_ = 0;
  scalars_.clear();
}

// The call at hand is not recorded; its inputs are, and stay.
void Recording::drop_call() {
  pending_.words.resize(input_words_);
  pending_.numbers.resize(input_numbers_);
  pending_.reals.clear();
  scalars_.clear();
}

bool Recording::record(const OpInfo& info, torch::jit::Stack& stack) {
  if (!info.rule || goes_elsewhere(info, stack)) return false;
  try {
    const size_t arguments = info.is_enum.size();
    for (size_t i = 0; i < arguments; ++i) {
      const c10::IValue& argument = torch::jit::peek(stack, i, arguments);
      if (info.is_written[i] && argument.isTensor() && buffer_of(argument.toTensor()) == nullptr)
        throw_unsupported("{}: it writes to a tensor of another device", info.name);
      if (info.is_written[i] && argument.isTensor() && repeats_elements(argument.toTensor()))
        throw_unsupported("{}: it writes to a tensor that repeats elements", info.name);
      need_operands(argument);
    }
    encode(info, stack);
    if (!(follows() && is_expected())) {
      diverge();
      if (!info.has_kernel(stack, backing_)) throw_unsupported("{}: eager has no kernel for these dtypes", info.name);
      if (info.writes && may_refuse_overlap(info, torch::jit::last(stack, arguments)))
        throw_unsupported("{}: it writes to memory that another operand shows", info.name);
      if (!infer(info, stack)) throw_unsupported("{}: nothing states the sizes of its results", info.name);
    }
  } catch (const Error&) {  // Unsupported; or eager raises an error too, its own
    drop_call();
    return false;
  } catch (...) {
    drop_call();
    throw;
  }
  if (info.is_random && !random_state_.defined()) random_state_ = generator_state(backing_);
  if (follows()) append(reals_, pending_.reals);
  writes_ = writes_ || info.writes;
  push_results(info, stack);
  count_ += 1;
  clear_pending();
  return true;
}

void Recording::forget_inputs() {
  if (inputs_.empty()) return;
  std::shared_ptr<KnownCalls> expected = std::move(expected_);
  start();
  expected_ = std::move(expected);
}

bool Recording::keeps(int64_t bytes) {
  if (inputs_.size() < inputs_to_check_) return false;
  int64_t kept = 0;
  for (const Input& input : inputs_)
    if (input.buffer && input.buffer->expired()) kept += bytes_of(input.info.form);
  inputs_to_check_ = inputs_.size() + inputs_.size() / 2;
  return kept > bytes;
}

Recording::Finished Recording::finish() {
  Finished finished;
  finished.has_effects = writes_ || is_random();
  for (const Created& created : created_)
    if (BufferPtr buffer = created.buffer.lock()) {
      finished.results.push_back(created.value);
      finished.outputs.push_back(std::move(buffer));
    }
  finished.results.push_back(-1);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    finished.inputs.emplace_back(std::move(inputs_[i].tensor));
    if (inputs_[i].buffer && inputs_[i].buffer->expired()) finished.results.push_back(static_cast<int64_t>(i));
  }
  const bool is_whole = follows() && count_ == expected_->calls.ends.size() && pending_.words.empty();
  if (is_whole && finished.results == expected_->results()) {
    finished.reals = std::move(reals_);
    finished.expected = expected_;
  } else {
    diverge();
    append(own_.code.words, pending_.words);
    append(own_.code.numbers, pending_.numbers);
    finished.reals = own_.code.reals;
    finished.calls = std::move(own_);
  }
  start();
  return finished;
}

void Recording::set_results(const Finished& finished, const std::vector<c10::IValue>& results) {
  for (size_t i = 0; i < finished.outputs.size(); ++i) finished.outputs[i]->backing = results[i].toTensor();
}

void Recording::fail(const Finished& finished, const std::string& reason) {
  for (const BufferPtr& buffer : finished.outputs) buffer->failure = reason;
}

}  // namespace cxxinductor::torch_bridge
