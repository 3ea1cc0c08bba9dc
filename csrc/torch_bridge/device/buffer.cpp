#include "torch_bridge/device/buffer.h"

#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "support/fork_locks.h"
#include "torch_bridge/record/fake_tensor.h"

namespace cxxinductor::torch_bridge {
namespace {

void release(void* context) { BufferPtr::reclaim(static_cast<Buffer*>(context)); }

// What data_ptr() returns: an address of the buffer's own, as torch.save and much else tells storages apart by it. It
// lies outside of what a process can map, so that to read from it ends the program rather than finding other data.
constexpr uint64_t out_of_reach = uint64_t{1} << 62 | uint64_t{1} << 55;
void* address_of(const Buffer* buffer) { return std::bit_cast<void*>(std::bit_cast<uint64_t>(buffer) | out_of_reach); }

at::DataPtr make_data_ptr(BufferPtr buffer) {
  const c10::Device device(c10::DeviceType::PrivateUse1, buffer->index);
  Buffer* raw = buffer.release();
  return {address_of(raw), raw, &release, device};
}

// Storages that PyTorch makes of a number of bytes.
class DeviceAllocator final : public c10::Allocator {
 public:
  at::DataPtr allocate(size_t bytes) override {
    const c10::Device device = c10::impl::getDeviceGuardImpl(c10::DeviceType::PrivateUse1)->getDevice();
    const auto size = static_cast<int64_t>(bytes);
    return make_data_ptr(c10::make_intrusive<Buffer>(device.index(), Form{c10::ScalarType::Byte, 0, {size}, {1}}));
  }
  void copy_data(void* /*target*/, const void* /*source*/, size_t /*bytes*/) const override {
    TORCH_CHECK(false, "memory of a recorded device cannot be copied as bytes");
  }
};

DeviceAllocator* allocator() {
  static constinit MadeOnce<DeviceAllocator, ForkLock::Leaf> made;
  return &made.get([] { return DeviceAllocator(); });
}

at::Tensor view_of(const at::Tensor& memory, const Form& form, int64_t offset) {
  at::Tensor view = at::empty({0}, memory.options().dtype(form.dtype));
  view.set_(memory.storage(), offset, form.sizes, form.strides);
  return view;
}

}  // namespace

Form form_of(const at::Tensor& tensor) {
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  return {tensor.scalar_type(), tensor.storage_offset(), {sizes.begin(), sizes.end()}, {strides.begin(), strides.end()}};
}

bool shows(const at::Tensor& tensor, const Form& form) {
  return tensor.scalar_type() == form.dtype && tensor.storage_offset() == form.offset && tensor.sizes() == c10::IntArrayRef(form.sizes) &&
         tensor.strides() == c10::IntArrayRef(form.strides);
}

int64_t bytes_of(const Form& form) {
  int64_t last = form.offset;
  for (size_t d = 0; d < form.sizes.size(); ++d) {
    if (form.sizes[d] == 0) return 0;
    last += (form.sizes[d] - 1) * form.strides[d];
  }
  return (last + 1) * static_cast<int64_t>(c10::elementSize(form.dtype));
}

c10::Storage make_storage(BufferPtr buffer) {
  const auto bytes = static_cast<size_t>(bytes_of(buffer->base));
  return {c10::Storage::use_byte_size_t(), bytes, make_data_ptr(std::move(buffer)), allocator(), /*resizable=*/true};
}

at::Tensor make_device_tensor(c10::Storage storage, const Form& form) {
  const auto keys = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1).add(recording_key);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, c10::scalarTypeToTypeMeta(form.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(form.sizes, form.strides, form.offset);
  return tensor;
}

at::Tensor make_device_view(const at::Tensor& of, const Form& form) {
  at::Tensor tensor =
      at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(of.storage()), of.key_set(), c10::scalarTypeToTypeMeta(form.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(form.sizes, form.strides, form.offset);
  return tensor;
}

// By its address, as storages that PyTorch makes of an address (at::from_blob) have no context.
Buffer* buffer_of(const c10::Storage& storage) {
  if (!storage || storage.device_type() != c10::DeviceType::PrivateUse1) return nullptr;
  const auto address = std::bit_cast<uint64_t>(storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get());
  return (address & out_of_reach) == out_of_reach ? std::bit_cast<Buffer*>(address & ~out_of_reach) : nullptr;
}

Buffer* buffer_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device().type() != c10::DeviceType::PrivateUse1) return nullptr;
  return buffer_of(tensor.unsafeGetTensorImpl()->unsafe_storage());
}

at::Tensor backing_of(const Buffer& buffer, const at::Tensor& tensor) {
  if (shows(tensor, buffer.base)) return buffer.backing;
  const auto start = buffer.backing.storage_offset() * static_cast<int64_t>(buffer.backing.element_size());
  return view_of(buffer.backing, form_of(tensor), start / static_cast<int64_t>(tensor.element_size()) + tensor.storage_offset());
}

void rebase(Buffer& buffer, c10::ScalarType dtype) {
  const auto element = static_cast<int64_t>(c10::elementSize(dtype));
  const Form old = std::exchange(buffer.base, Form{dtype, 0, {bytes_of(buffer.base) / element}, {1}});
  if (!buffer.backing.defined()) return;
  const auto start = buffer.backing.storage_offset() * static_cast<int64_t>(c10::elementSize(old.dtype));
  buffer.backing = view_of(buffer.backing, buffer.base, start / element);
}

void extend(Buffer& buffer, int64_t bytes) {
  const int64_t elements = bytes / static_cast<int64_t>(c10::elementSize(buffer.base.dtype));
  buffer.base = {buffer.base.dtype, 0, {elements}, {1}};
  buffer.backing = view_of(buffer.backing, buffer.base, buffer.backing.storage_offset());
}

c10::Allocator* device_allocator() { return allocator(); }

}  // namespace cxxinductor::torch_bridge
