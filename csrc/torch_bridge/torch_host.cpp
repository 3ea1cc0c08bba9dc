#include "torch_bridge/torch_host.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/item.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <unordered_map>

#include "ir/device_types.h"
#include "support/error.h"
#include "support/fork_locks.h"
#include "torch_bridge/extern_callee.h"
#include "torch_bridge/python_error.h"
#include "torch_bridge/recording_place.h"
#include "torch_bridge/types.h"
#include "torch_bridge/view_tensor.h"

namespace cxxinductor::torch_bridge {

using runtime::Owner;
using runtime::OwnerOperations;
using runtime::TensorRef;
using runtime::TensorView;

namespace {

constexpr OwnerOperations tensor_operations{[](void* object) { c10::raw::intrusive_ptr::incref(static_cast<c10::TensorImpl*>(object)); },
                                            [](void* object) { c10::raw::intrusive_ptr::decref(static_cast<c10::TensorImpl*>(object)); }};
constexpr OwnerOperations storage_operations{[](void* object) { c10::raw::intrusive_ptr::incref(static_cast<c10::StorageImpl*>(object)); },
                                             [](void* object) { c10::raw::intrusive_ptr::decref(static_cast<c10::StorageImpl*>(object)); }};

c10::IntArrayRef array_ref(std::span<const int64_t> span) { return {span.data(), span.size()}; }

at::Tensor on_storage(c10::Storage storage, void* data, DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  const auto device = storage.device().type();
  const auto offset = (static_cast<char*>(data) - static_cast<char*>(storage.mutable_data())) / byte_size(dtype);
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), dense_keys(device), c10::scalarTypeToTypeMeta(to_torch(dtype)));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(array_ref(sizes), array_ref(strides), offset);
  return tensor;
}

// Bytes from element 0 to the end of the last element that a view reaches.
size_t reach(const TensorView& view) {
  int64_t last = 0;
  for (size_t d = 0; d < view.sizes.size(); ++d) {
    if (view.sizes[d] == 0) return 0;
    last += (view.sizes[d] - 1) * view.strides[d];
  }
  return static_cast<size_t>(last + 1) * static_cast<size_t>(byte_size(view.dtype));
}

// Views of an empty tensor have offsets, too, although torch gives no address for it.
void* start_of(const at::Tensor& tensor) {
  if (tensor.numel() > 0) return tensor.mutable_data_ptr();
  auto* const storage = static_cast<char*>(tensor.storage().mutable_data());
  return storage == nullptr ? nullptr : storage + static_cast<size_t>(tensor.storage_offset()) * tensor.element_size();
}

}  // namespace

TensorRef to_ref(at::Tensor tensor) {
  TensorRef ref;
  if (!tensor.defined()) return ref;
  ref.data = start_of(tensor);
  ref.dtype = from_torch(tensor.scalar_type());
  ref.device = from_torch(tensor.device());
  ref.rank = static_cast<uint32_t>(tensor.dim());
  ref.sizes_data = tensor.sizes().data();
  ref.strides_data = tensor.strides().data();
  ref.owner = Owner(tensor.unsafeReleaseTensorImpl(), &tensor_operations);
  return ref;
}

at::Tensor to_tensor(TensorRef ref) {
  if (!ref.owner) return {};
  return at::Tensor(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim(static_cast<c10::TensorImpl*>(ref.owner.detach())));
}

runtime::Value to_value(c10::IValue&& value) {
  if (value.isTensor()) return to_ref(std::move(value).toTensor());
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return to_ref(at::native::wrapped_scalar_tensor(value.toDouble()));  // promotes as a number in calls
  if (value.isNone()) return {};
  throw_unsupported("inputs of type {}", value.tagKind());
}

c10::IValue to_ivalue(runtime::Value&& value) {
  switch (value.kind) {
    case runtime::Value::Kind::Tensor:
      return to_tensor(std::move(value.tensor));
    case runtime::Value::Kind::Integer:
      return value.integer;
    case runtime::Value::Kind::None:
      return {};
  }
  return {};
}

at::Tensor view_tensor(const TensorView& view) {
  if (view.base == nullptr) {
    // Arena memory: the executable keeps it for the whole call, so this storage owns nothing.
    c10::Storage storage(c10::Storage::use_byte_size_t(), reach(view), c10::DataPtr(view.data, to_torch(view.device)), nullptr, false);
    return on_storage(std::move(storage), view.data, view.dtype, view.sizes, view.strides);
  }
  auto* impl = static_cast<c10::TensorImpl*>(view.base->owner.get());
  at::Tensor base(c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(impl));
  if (view.whole) return base;
  return on_storage(base.storage(), view.data, view.dtype, view.sizes, view.strides);
}

Owner TorchHost::allocate(Device device, int64_t bytes, void** data) {
  const c10::Device torch_device = to_torch(device);
  const c10::OptionalDeviceGuard guard(torch_device.is_cpu() ? std::nullopt : std::optional(torch_device));
  c10::Allocator* allocator = c10::GetAllocator(torch_device.type());
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), static_cast<size_t>(bytes),
                                                       allocator->allocate(static_cast<size_t>(bytes)), allocator, false);
  *data = storage->mutable_data();
  return Owner(storage.release(), &storage_operations);
}

TensorRef TorchHost::empty_strided(DType dtype, Device device, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  const c10::Device torch_device = to_torch(device);
  const c10::OptionalDeviceGuard guard(torch_device.is_cpu() ? std::nullopt : std::optional(torch_device));
  at::Tensor tensor = at::detail::empty_strided_generic(array_ref(sizes), array_ref(strides), c10::GetAllocator(torch_device.type()),
                                                        dense_keys(torch_device.type()), to_torch(dtype));
  return to_ref(std::move(tensor));
}

TensorRef TorchHost::alias(const TensorRef& base, void* data, DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  auto* impl = static_cast<c10::TensorImpl*>(base.owner.get());
  return to_ref(on_storage(impl->storage(), data, dtype, sizes, strides));
}

bool TorchHost::reuse_storage(TensorRef& tensor, DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  const c10::Storage storage = static_cast<c10::TensorImpl*>(tensor.owner.get())->storage();
  // This lets go of the tensor that came: whoever else holds it, or a view of it, still counts on the storage.
  tensor = to_ref(on_storage(storage, tensor.data, dtype, sizes, strides));
  return storage.use_count() == 2 && storage.nbytes() == reach({nullptr, dtype, {}, sizes, strides});
}

std::vector<bool> TorchHost::held_by_others(std::span<const TensorRef* const> tensors) {
  const auto impl_of = [](const TensorRef* tensor) { return static_cast<c10::TensorImpl*>(tensor->owner.get()); };
  std::unordered_map<c10::TensorImpl*, size_t> references;  // of the call's
  for (const TensorRef* tensor : tensors) ++references[impl_of(tensor)];
  struct Memory {
    size_t tensors = 0;
    bool is_held = false;
  };
  std::unordered_map<const c10::StorageImpl*, Memory> memories;
  for (const auto& [impl, count] : references) {
    Memory& memory = memories[impl->storage().unsafeGetStorageImpl()];
    ++memory.tensors;
    // A tensor that Python has seen is held by its Python object too, which lives as long as the tensor does.
    const size_t others = c10::raw::intrusive_ptr::use_count(impl) - count;
    if (others > 1 || (others == 1 && !impl->pyobj_slot()->has_unique_reference())) memory.is_held = true;
  }
  std::vector<bool> held;
  for (const TensorRef* tensor : tensors) {
    const c10::Storage& storage = impl_of(tensor)->storage();
    const Memory& memory = memories[storage.unsafeGetStorageImpl()];
    held.push_back(memory.is_held || storage.use_count() > memory.tensors);
  }
  return held;
}

int64_t TorchHost::storage_bytes(const TensorRef& tensor) {
  return static_cast<int64_t>(static_cast<c10::TensorImpl*>(tensor.owner.get())->storage().nbytes());
}

void TorchHost::copy_strided(const TensorView& to, const TensorView& from) {
  at::AutoDispatchBelowADInplaceOrView guard;
  at::Tensor destination = view_tensor(to);
  destination.copy_(view_tensor(from));
}

int64_t TorchHost::read_integer(const TensorView& from) {
  at::AutoDispatchBelowADInplaceOrView guard;
  return view_tensor(from).item().toLong();
}

void* TorchHost::current_stream(Device device) {
  if (!has_streams(device)) return nullptr;
  const c10::Device torch_device = to_torch(device);
  return c10::impl::VirtualGuardImpl(torch_device.type()).getStream(torch_device).native_handle();
}

void TorchHost::drop_error() { forget_python_error(); }

std::shared_ptr<runtime::RecordingPlace> TorchHost::recording_place(Device device, void* stream) { return torch_bridge::recording_place(device, stream); }

std::unique_ptr<runtime::ExternCallee> TorchHost::resolve_extern(const plan::CallExtern& call) { return make_extern_callee(call); }

void TorchHost::parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) { body(begin, end); });
}

void* TorchHost::find_symbol(const char* name) {
  if (void* found = dlsym(RTLD_DEFAULT, name)) return found;
  static constinit MadeOnce<void*, ForkLock::Loader> torch_cpu;
  void* const library = torch_cpu.get([] { return dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD); });
  return library == nullptr ? nullptr : dlsym(library, name);
}

TorchHost& torch_host() {
  static constinit MadeOnce<TorchHost, ForkLock::Leaf> host;
  return host.get([] { return TorchHost(); });
}

}  // namespace cxxinductor::torch_bridge
