// Memory of the recorded device: what a storage of it stands for. The tensors are plain ones, whose metadata other
// tensors may take over (Module::to does); so all state is with the storage, in the context of its DataPtr.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/util/SmallVector.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cxxinductor::torch_bridge {

// What a tensor shows of its storage.
struct Form {
  c10::ScalarType dtype = c10::ScalarType::Float;
  int64_t offset = 0;
  c10::SmallVector<int64_t, 5> sizes, strides;

  friend bool operator==(const Form&, const Form&) = default;
};
Form form_of(const at::Tensor& tensor);
bool shows(const at::Tensor& tensor, const Form& form);
int64_t bytes_of(const Form& form);  // from its first element to its last

// Elements are in `backing`, or what a recorded call will compute, or nobody's: nothing was written.
struct Buffer final : c10::intrusive_ptr_target {
  Buffer(c10::DeviceIndex index_, Form base_) : index(index_), base(std::move(base_)) {}

  const c10::DeviceIndex index;
  Form base;            // all of the memory
  at::Tensor backing;   // on the backing device, in the form `base`; undefined where there are no elements yet
  std::string failure;  // what kept the elements from being computed

  // In the recording of this number: the value of `base`, and those of other forms. Guarded by the device's lock.
  uint64_t recording = 0;
  uint32_t value = 0;
  std::vector<std::pair<Form, uint32_t>> views;
};
using BufferPtr = c10::intrusive_ptr<Buffer>;

// For PyTorch, which makes storages of a number of bytes.
c10::Allocator* device_allocator();
// A storage of the device. Its data pointer is a name that nothing can be read from: elements may not be computed yet.
c10::Storage make_storage(BufferPtr buffer);
at::Tensor make_device_tensor(c10::Storage storage, const Form& form);
// Of another tensor's memory. It is an inference tensor if that one is, whatever the mode is now.
at::Tensor make_device_view(const at::Tensor& of, const Form& form);
// Null for tensors of other devices.
Buffer* buffer_of(const at::Tensor& tensor);
Buffer* buffer_of(const c10::Storage& storage);

// The tensor's elements on the backing device, in memory shared with the buffer, which has a backing.
at::Tensor backing_of(const Buffer& buffer, const at::Tensor& tensor);
// The backing's memory has become that long, in bytes: the base is all of it from now on, as a vector. It is part of no recording.
void extend(Buffer& buffer, int64_t bytes);
// The buffer shows memory of another dtype: its base is a vector from now on. It is part of no recording.
void rebase(Buffer& buffer, c10::ScalarType dtype);

}  // namespace cxxinductor::torch_bridge
