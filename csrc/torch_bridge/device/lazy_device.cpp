#include "torch_bridge/device/lazy_device.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "support/error.h"
#include "torch_bridge/device/backing_guard.h"
#include "torch_bridge/device/generator.h"
#include "torch_bridge/device/out_variants.h"
#include "torch_bridge/record/recorder.h"

namespace cxxinductor::torch_bridge {
namespace {

// A recording that becomes longer than any step of a program is one of a loop without sync points.
constexpr size_t most_calls = 20000;

// Of inputs that the program has dropped, as the batches of such a loop.
constexpr int64_t most_kept_bytes = int64_t{256} << 20;

// Of one index. A program that makes more has something in each of them that differs.
constexpr size_t most_known = 64;

template <class Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) return visit(value.toTensor());
  if (value.isTensorList() || value.isOptionalTensorList())
    for (const c10::IValue& item : value.toListRef()) for_each_tensor(item, visit);
}

// As at::native::fill_empty_deterministic_.
void fill_deterministically(at::Tensor& tensor) {
  const at::AutoDispatchBelowADInplaceOrView below;
  if (tensor.is_floating_point() || tensor.is_complex()) {
    tensor.fill_(std::numeric_limits<double>::quiet_NaN());
  } else if (tensor.scalar_type() == at::kBool) {
    tensor.fill_(true);
  } else {
    const int64_t bits = 8 * static_cast<int64_t>(tensor.element_size()) - (at::isSignedType(tensor.scalar_type()) ? 1 : 0);
    tensor.fill_(bits >= 63 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << bits) - 1);
  }
}

at::Tensor empty_backing(const Form& form, c10::Device device) {
  return at::empty_strided(form.sizes, form.strides, at::TensorOptions(form.dtype).device(device));
}

}  // namespace

c10::DeviceIndex& current_index() {
  static thread_local c10::DeviceIndex index = 0;
  return index;
}

LazyDevice::LazyDevice(c10::DeviceType backing, c10::DeviceIndex count, Options options) : backing_(backing), options_(std::move(options)) {
  for (c10::DeviceIndex index = 0; index < count; ++index) lanes_.push_back(make_lane(index, {}));
}

std::unique_ptr<LazyDevice::Lane> LazyDevice::make_lane(c10::DeviceIndex index, LostRecordings lost) {
  const c10::Device device(c10::DeviceType::PrivateUse1, index);
  return std::make_unique<Lane>(Lane{Recording(device, backing(index), *ops_, lost), {}, EarlyStart(backing(index)), {}, nullptr});
}

// Another thread of the parent was changing all of it, so nothing is destroyed.
void LazyDevice::record_anew_in_child() {
  static_cast<void>(ops_.release());
  ops_ = std::make_unique<OpTable>();
  std::construct_at(&through_aten_);
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& old = *lanes_[i].release();
    lanes_[i] = make_lane(static_cast<c10::DeviceIndex>(i), old.recording.lost_from(old.first_unfinished));
    if (EarlyStart& early = lanes_[i]->early; early.is_on() != old.early.is_on()) early.turn(old.early.is_on());
  }
}

c10::Device LazyDevice::backing(c10::DeviceIndex index) const { return backing_ == c10::kCPU ? c10::Device(c10::kCPU) : c10::Device(backing_, index); }

c10::DeviceIndex LazyDevice::index_of(const OpInfo& info, const torch::jit::Stack& stack) const {
  const auto arguments = torch::jit::last(stack, info.is_enum.size());
  c10::DeviceIndex index = -1;
  if (info.device_argument >= 0)
    if (const c10::IValue& device = arguments[static_cast<size_t>(info.device_argument)];
        device.isDevice() && device.toDevice().type() == c10::DeviceType::PrivateUse1)
      index = device.toDevice().index();
  for (const c10::IValue& argument : arguments) {
    if (index >= 0) return index;
    for_each_tensor(argument, [&](const at::Tensor& tensor) {
      if (index < 0 && buffer_of(tensor) != nullptr) index = tensor.device().index();
    });
  }
  return index >= 0 ? index : current_index();
}

void LazyDevice::call(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  Lock lock(mutex_);
  const OpInfo& info = ops_->of(op);
  if (info.composite != nullptr || info.is_composite || info.functional) {
    lock.unlock();
    if (info.composite != nullptr && info.composite(stack)) return;
    if (info.functional && write_out(op, *info.functional, stack)) return;
    if (info.is_composite) return op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, stack);
    lock.lock();
  }
  if (info.memory_op != MemoryOp::None) {
    lock.unlock();
    if (run_memory_op(info, stack)) return;
    lock.lock();
  }
  const c10::DeviceIndex index = index_of(info, stack);
  TORCH_CHECK(index < count(), "the recorded device has ", int{count()}, " indices, found index ", int{index});
  Lane& lane = *lanes_[static_cast<size_t>(index)];
  if (info.generator_argument >= 0) {
    c10::IValue& generator = torch::jit::peek(stack, static_cast<size_t>(info.generator_argument), info.is_enum.size());
    if (generator.isGenerator() && is_default_generator(generator.toGenerator())) generator = c10::IValue();
  }
  follow_settings(lane, info);
  const bool has_usual_dtype = c10::get_default_dtype_as_scalartype() == c10::ScalarType::Float;  // which rules of ops know
  if (has_usual_dtype && lane.recording.record(info, stack)) {
    counters_.calls += 1;
    if (lane.recording.size() >= lane.early.next()) {
      const ContextSettingsScope settings(lane.settings);
      lane.early.advance(lane.recording);
    }
    if (lane.recording.size() >= most_calls || lane.recording.keeps(most_kept_bytes)) flush(lane);
    return;
  }
  lock.unlock();
  run_on_backing(info, stack);
}

// All calls of a recording that read settings are made under the same ones.
void LazyDevice::follow_settings(Lane& lane, const OpInfo& next) {
  if (lane.recording.size() > 0) {
    if (!next.reads_settings || lane.settings.are_current()) return;
    flush(lane);
  }
  lane.settings = ContextSettings::current();
  const KnownCalls* expected = lane.recording.expected();
  if (expected == nullptr || expected->settings == lane.settings) return;
  lane.recording.expect(nullptr);
  lane.early.drop();
}

void LazyDevice::flush() {
  const Lock lock(mutex_);
  for (const auto& lane : lanes_) flush(*lane);
}

// What was recorded before with the same numbers, or what is known of it from now on.
std::shared_ptr<KnownCalls> LazyDevice::find_or_add(Lane& lane, Recording::Finished& finished) const {
  const CallCode& code = finished.calls.code;
  std::shared_ptr<Specializations> forms;
  auto found = std::find(lane.known.begin(), lane.known.end(), finished.expected);
  if (!finished.expected)
    found = std::find_if(lane.known.begin(), lane.known.end(), [&](const auto& known) {
      if (known->settings != lane.settings || !known->differs_in_numbers_alone(code.words, finished.results)) return false;
      forms = known->forms();
      return known->calls.code.numbers == code.numbers;
    });
  if (found != lane.known.end()) {
    std::rotate(found, found + 1, lane.known.end());
    return lane.known.back();
  }
  if (finished.expected) return finished.expected;  // it was dropped in the meantime
  if (!forms)
    forms = std::make_shared<Specializations>(fmt::format("recording of {} calls", finished.calls.ends.size()), options_,
                                              SpecializationPolicy{.reals = true, .sets_of_sizes = 2});
  if (lane.known.size() == most_known) lane.known.erase(lane.known.begin());
  lane.known.push_back(std::make_shared<KnownCalls>(std::move(finished.calls), lane.settings, finished.results, std::move(forms), compiled_));
  return lane.known.back();
}

void LazyDevice::flush(Lane& lane) {
  try {
    run_recorded(lane);
  } catch (...) {
    lane.first_unfinished = lane.recording.number();
    throw;
  }
  lane.first_unfinished = lane.recording.number();
}

// Calls are compiled here alone, or from here in the background.
void LazyDevice::run_recorded(Lane& lane) {
  if (lane.recording.size() == 0) return lane.recording.forget_inputs();
  const BackingGuard guard;
  const ContextSettingsScope settings(lane.settings);
  Recording::Finished finished = lane.recording.finish();
  if (finished.outputs.empty() && !finished.has_effects) return lane.early.drop();  // views alone
  try {
    const std::shared_ptr<KnownCalls> calls = find_or_add(lane, finished);
    if (!finished.expected) lane.early.drop();
    const KnownCalls::Results results = calls->run(std::move(finished.inputs), finished.reals, options_, lane.early);
    Recording::set_results(finished, results.values);
    counters_.runs += 1;
    if (!results.is_compiled) counters_.uncompiled_runs += 1;
    if (lane.last) lane.last->next = calls;
    lane.last = calls;
    const std::shared_ptr<KnownCalls> next = calls->next.lock();
    lane.recording.expect(next ? next : calls);
    lane.early.expect(next ? next : calls);
  } catch (const std::exception& error) {
    lane.early.drop();
    Recording::fail(finished, fmt::format("a recorded computation failed: {}", error.what()));
    throw;
  }
}

void LazyDevice::draw_recorded(c10::DeviceIndex index) {
  Lane& lane = *lanes_.at(static_cast<size_t>(index));
  if (!lane.recording.is_random()) return;
  if (!lane.early.has_drawn_last()) {
    if (lane.early.has_drawn()) lane.early.drop();
    set_generator_state(backing(index), lane.recording.random_state());
  }
  flush(lane);
}

bool LazyDevice::run_memory_op(const OpInfo& info, torch::jit::Stack& stack) {
  const auto set = [&](const at::Tensor& self, const c10::Storage& storage, int64_t offset, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
    c10::TensorImpl* tensor = self.unsafeGetTensorImpl();
    tensor->set_storage_keep_dtype(storage);
    tensor->set_sizes_and_strides(sizes, strides, offset);
    torch::jit::drop(stack, info.is_enum.size());
    stack.emplace_back(self);
    return true;
  };
  const size_t count = info.is_enum.size();
  switch (info.memory_op) {
    case MemoryOp::Empty:
    case MemoryOp::EmptyStrided:
      make_empty(stack, info);
      return true;
    case MemoryOp::Copy:
      return copy(stack);
    case MemoryOp::ToCopy:
      return to_copy(stack);
    case MemoryOp::SetStorage: {
      const at::Tensor self = torch::jit::peek(stack, 0, count).toTensor();
      const c10::Storage storage = torch::jit::peek(stack, 1, count).toStorage();
      return set(self, storage, 0, static_cast<int64_t>(storage.nbytes() / self.element_size()), 1);
    }
    case MemoryOp::SetStorageView: {
      const at::Tensor self = torch::jit::peek(stack, 0, count).toTensor();
      const auto sizes = torch::jit::peek(stack, 3, count).toIntVector(), strides = torch::jit::peek(stack, 4, count).toIntVector();
      return set(self, torch::jit::peek(stack, 1, count).toStorage(), torch::jit::peek(stack, 2, count).toInt(), sizes, strides);
    }
    case MemoryOp::SetTensor: {
      const at::Tensor self = torch::jit::peek(stack, 0, count).toTensor(), source = torch::jit::peek(stack, 1, count).toTensor();
      return set(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
    }
    case MemoryOp::None:
      break;
  }
  return false;
}

// Memory that nobody has written to needs no call, and none may follow that reads it.
void LazyDevice::make_empty(torch::jit::Stack& stack, const OpInfo& info) {
  const c10::DeviceIndex index = index_of(info, stack);
  TORCH_CHECK(index < count(), "the recorded device has ", int{count()}, " indices, found index ", int{index});
  const size_t arguments = info.is_enum.size();
  const bool is_strided = info.memory_op == MemoryOp::EmptyStrided;
  const auto sizes = torch::jit::peek(stack, 0, arguments).toIntVector();
  Form form;
  form.sizes.assign(sizes.begin(), sizes.end());
  if (is_strided) {
    const auto strides = torch::jit::peek(stack, 1, arguments).toIntVector();
    form.strides.assign(strides.begin(), strides.end());
  } else {
    const c10::IValue format = torch::jit::peek(stack, 5, arguments);
    const auto strides =
        at::empty(sizes, at::TensorOptions().device(at::kMeta), format.isNone() ? c10::MemoryFormat::Contiguous : format.toMemoryFormat()).strides();
    form.strides.assign(strides.begin(), strides.end());
  }
  const c10::IValue dtype = torch::jit::peek(stack, is_strided ? 2 : 1, arguments);
  form.dtype = dtype.isNone() ? at::typeMetaToScalarType(at::get_default_dtype()) : dtype.toScalarType();
  torch::jit::drop(stack, arguments);
  at::Tensor made = make_device_tensor(make_storage(c10::make_intrusive<Buffer>(index, form)), form);
  const at::Context& context = at::globalContext();
  if (context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory()) fill_deterministically(made);
  stack.emplace_back(std::move(made));
}

// A tensor of this device with the elements that a tensor of another one has now.
at::Tensor LazyDevice::on_device(const at::Tensor& tensor, c10::DeviceIndex index) {
  const BackingGuard guard;
  at::Tensor elements = tensor.to(tensor.options().device(backing(index)), /*non_blocking=*/false, /*copy=*/true, c10::MemoryFormat::Preserve);
  auto buffer = c10::make_intrusive<Buffer>(index, form_of(elements));
  const Form form = buffer->base;
  buffer->backing = std::move(elements);
  return make_device_tensor(make_storage(std::move(buffer)), form);
}

// copy_(self, src, non_blocking). False: it is to be recorded, or to be run through ATen.
bool LazyDevice::copy(torch::jit::Stack& stack) {
  const at::Tensor self = torch::jit::peek(stack, 0, 3).toTensor(), source = torch::jit::peek(stack, 1, 3).toTensor();
  Buffer* buffer = buffer_of(self);
  if (buffer == nullptr || buffer_of(source) != nullptr || source.unsafeGetTensorImpl()->is_wrapped_number()) return false;
  {
    const Lock lock(mutex_);
    const uint64_t no_recording = 0;
    if (buffer->recording == no_recording && !buffer->backing.defined() && shows(self, buffer->base) && !self.is_conj() && !self.is_neg()) {
      const BackingGuard guard;
      buffer->backing = empty_backing(buffer->base, backing(buffer->index));
      buffer->backing.copy_(source);
      torch::jit::drop(stack, 3);
      stack.emplace_back(self);
      return true;
    }
  }
  torch::jit::peek(stack, 1, 3) = on_device(source, buffer->index);
  return false;
}

// _to_copy(self, *, dtype, layout, device, pin_memory, non_blocking, memory_format)
bool LazyDevice::to_copy(torch::jit::Stack& stack) {
  constexpr size_t arguments = 7;
  const at::Tensor self = torch::jit::peek(stack, 0, arguments).toTensor();
  c10::IValue& device = torch::jit::peek(stack, 3, arguments);
  torch::jit::peek(stack, 5, arguments) = false;
  if (device.isNone()) return false;
  const c10::Device wanted = device.toDevice();
  if (wanted.type() != c10::DeviceType::PrivateUse1) return false;
  const c10::DeviceIndex index = wanted.has_index() ? wanted.index() : current_index();
  if (index == self.device().index()) {
    device = c10::IValue();
    return false;
  }
  const c10::IValue dtype = torch::jit::peek(stack, 1, arguments);
  const at::TensorOptions options = self.options().device(wanted).dtype(dtype.isNone() ? self.scalar_type() : dtype.toScalarType());
  const c10::IValue format = torch::jit::peek(stack, 6, arguments);
  const bool preserves = format.isNone() || format.toMemoryFormat() == c10::MemoryFormat::Preserve;
  at::Tensor made = preserves && self.is_non_overlapping_and_dense() ? at::empty_strided(self.sizes(), self.strides(), options)
                    : preserves                                      ? at::empty(self.sizes(), options)
                                                                     : at::empty(self.sizes(), options, format.toMemoryFormat());
  made.copy_(self);
  torch::jit::drop(stack, arguments);
  stack.emplace_back(std::move(made));
  return true;
}

void LazyDevice::set_early_starts(bool on) {
  const Lock lock(mutex_);
  for (const auto& lane : lanes_) lane->early.turn(on);
}

DeviceCounters LazyDevice::counters() const {
  const Lock lock(mutex_);
  DeviceCounters counters = counters_;
  counters.compiled = compiled_->load();
  for (const auto& lane : lanes_) {
    counters.early_starts += lane->early.starts();
    counters.early_drops += lane->early.drops();
  }
  return counters;
}

std::string LazyDevice::describe() const {
  const Lock lock(mutex_);
  std::string text =
      fmt::format("{} calls recorded, {} runs of recordings, {} of them not compiled\n", counters_.calls, counters_.runs, counters_.uncompiled_runs);
  for (const auto& [op, times] : through_aten_) text += fmt::format("through ATen: {} ({} times)\n", op, times);
  std::set<const Specializations*> described;
  for (const auto& lane : lanes_)
    for (const auto& known : lane->known)
      if (described.insert(known->forms().get()).second) text += known->forms()->describe();
  return text;
}

}  // namespace cxxinductor::torch_bridge
