// Calls that are not recorded: they run through ATen, after what is recorded.
#include <ATen/core/List.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <utility>

#include "torch_bridge/device/backing_guard.h"
#include "torch_bridge/device/generator.h"
#include "torch_bridge/device/lazy_device.h"

namespace cxxinductor::torch_bridge {
namespace {

void collect_tensors(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor() && value.toTensor().defined()) tensors.push_back(value.toTensor());
  if (value.isTensorList() || value.isOptionalTensorList())
    for (const c10::IValue& item : value.toListRef()) collect_tensors(item, tensors);
}

// A tensor shows its memory conjugated or negated where these bits say so.
at::Tensor with_bits_of(const at::Tensor& tensor, at::Tensor other) {
  other._set_conj(tensor.is_conj());
  other._set_neg(tensor.is_neg());
  return other;
}

// What a tensor of the backing device shows of the buffer, in whose memory it lies.
Form form_in(const Buffer& buffer, const at::Tensor& elements) {
  Form form = form_of(elements);
  form.offset -= buffer.backing.storage_offset() * static_cast<int64_t>(buffer.backing.element_size()) / static_cast<int64_t>(elements.element_size());
  return form;
}

// An op in place may have changed what its argument shows, or have grown its memory, which may have been larger than the buffer before.
void take_over_metadata(const at::Tensor& tensor, const at::Tensor& elements) {
  Buffer& buffer = *buffer_of(tensor);
  bool is_other = true;
  if (!elements.storage().is_alias_of(buffer.backing.storage())) {
    buffer.backing = elements;
    buffer.base = form_of(elements);
    buffer.base.offset = 0;
  } else {
    const int64_t bytes = bytes_of(form_in(buffer, elements));
    is_other = bytes > bytes_of(buffer.base);
    if (is_other) extend(buffer, bytes);
  }
  if (is_other) tensor.storage().unsafeGetStorageImpl()->set_nbytes(static_cast<size_t>(bytes_of(buffer.base)));
  if (tensor.sizes() != elements.sizes() || tensor.strides() != elements.strides())
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(elements.sizes(), elements.strides(), tensor.storage_offset());
}

}  // namespace

// The device's lock is held, nothing is recorded.
c10::IValue LazyDevice::to_backing(const c10::IValue& value) {
  if (value.isTensor()) {
    Buffer* buffer = buffer_of(value.toTensor());
    if (buffer == nullptr) return value;
    const std::string failure = lanes_[static_cast<size_t>(buffer->index)]->recording.failure_of(*buffer);
    TORCH_CHECK(failure.empty(), failure);
    if (!buffer->backing.defined())
      buffer->backing = at::empty_strided(buffer->base.sizes, buffer->base.strides, at::TensorOptions(buffer->base.dtype).device(backing(buffer->index)));
    const at::Tensor elements = backing_of(*buffer, value.toTensor());
    if (!value.toTensor().is_conj() && !value.toTensor().is_neg()) return elements;
    return with_bits_of(value.toTensor(), elements.alias());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const c10::IValue& item : value.toListRef()) list.push_back(to_backing(item).toTensor());
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const c10::IValue& item : value.toListRef()) list.push_back(item.isNone() ? std::nullopt : std::optional(to_backing(item).toTensor()));
    return list;
  }
  if (value.isDevice() && value.toDevice().type() == c10::DeviceType::PrivateUse1) {
    const c10::Device device = value.toDevice();
    return backing(device.has_index() ? device.index() : current_index());
  }
  if (value.isGenerator()) return backing_generator(value.toGenerator());
  return value;
}

// A tensor of the device for one of its backing: an argument's, another one of an argument's memory, or a new one.
c10::IValue LazyDevice::from_backing(const c10::IValue& value, const std::vector<at::Tensor>& arguments, c10::DeviceIndex index) {
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const c10::IValue& item : value.toListRef()) list.push_back(from_backing(item, arguments, index).toTensor());
    return list;
  }
  if (!value.isTensor() || !value.toTensor().defined() || value.toTensor().device() != backing(index)) return value;
  const at::Tensor& elements = value.toTensor();
  TORCH_CHECK_NOT_IMPLEMENTED(elements.layout() == c10::kStrided, "a recorded device has no tensors of layout ", elements.layout());
  for (const at::Tensor& argument : arguments) {
    const Buffer* buffer = buffer_of(argument);
    if (buffer == nullptr || !elements.storage().is_alias_of(buffer->backing.storage())) continue;
    return with_bits_of(elements, make_device_view(argument, form_in(*buffer, elements)));
  }
  Form form = form_of(elements);
  auto buffer = c10::make_intrusive<Buffer>(index, form);
  buffer->backing = elements;
  if (!elements.is_non_overlapping_and_dense() || form.offset != 0) {  // other results may share its memory
    const at::Tensor memory = at::empty({0}, elements.options());
    buffer->base = {form.dtype, 0, {static_cast<int64_t>(elements.storage().nbytes() / elements.element_size())}, {1}};
    memory.unsafeGetTensorImpl()->set_storage_keep_dtype(elements.storage());
    memory.unsafeGetTensorImpl()->set_sizes_and_strides(buffer->base.sizes, buffer->base.strides, 0);
    buffer->backing = memory;
  }
  return with_bits_of(elements, make_device_tensor(make_storage(std::move(buffer)), form));
}

void LazyDevice::run_on_backing(const OpInfo& info, torch::jit::Stack& stack) {
  const BackingGuard guard;
  const std::vector<c10::IValue> given = torch::jit::pop(stack, info.is_enum.size());
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& argument : given) collect_tensors(argument, tensors);
  const bool goes_elsewhere = Recording::goes_elsewhere(info, given);  // of another device
  c10::DeviceIndex index = 0;
  torch::jit::Stack elements;
  {
    const Lock lock(mutex_);
    for (const auto& lane : lanes_) flush(*lane);
    torch::jit::Stack all = given;
    index = index_of(info, all);
    for (const c10::IValue& argument : given) {
      elements.push_back(to_backing(argument));
      // It may change what a tensor shows, and the buffer has its own.
      if (info.writes && elements.back().isTensor() && elements.back().toTensor().defined()) elements.back() = elements.back().toTensor().alias();
    }
    if (!info.is_sync) {
      counters_.through_aten += 1;
      through_aten_[info.name] += 1;
    }
  }
  const torch::jit::Stack arguments = elements;
  info.op.callBoxed(elements);
  const Lock lock(mutex_);
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i].isTensor() && buffer_of(given[i].toTensor()) != nullptr) take_over_metadata(given[i].toTensor(), arguments[i].toTensor());
  for (size_t i = 0; i < elements.size(); ++i) {
    const int written = i < info.written_argument.size() ? info.written_argument[i] : -1;
    if (written >= 0 && given[static_cast<size_t>(written)].isTensor())
      stack.push_back(given[static_cast<size_t>(written)]);
    else
      stack.push_back(goes_elsewhere ? elements[i] : from_backing(elements[i], tensors, index));
  }
}

}  // namespace cxxinductor::torch_bridge
