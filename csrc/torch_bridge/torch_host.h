// The runtime's host, on torch: its allocator, streams, threads and dispatcher.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "runtime/host.h"

namespace cxxinductor::torch_bridge {

// A tensor as the runtime sees it; shares the TensorImpl. An undefined tensor becomes a ref without owner.
runtime::TensorRef to_ref(at::Tensor tensor);
// Back again; requires a ref that a TorchHost (or to_ref) made. Takes the reference over.
at::Tensor to_tensor(runtime::TensorRef ref);
// The same of inputs and results of calls. Unsupported for what is no tensor, number or None.
runtime::Value to_value(c10::IValue&& value);
c10::IValue to_ivalue(runtime::Value&& value);

class TorchHost final : public runtime::Host {
 public:
  runtime::Owner allocate(Device device, int64_t bytes, void** data) override;
  runtime::TensorRef empty_strided(DType dtype, Device device, std::span<const int64_t> sizes, std::span<const int64_t> strides) override;
  bool reuse_storage(runtime::TensorRef& tensor, DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides) override;
  runtime::TensorRef alias(const runtime::TensorRef& base, void* data, DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides) override;
  std::vector<bool> held_by_others(std::span<const runtime::TensorRef* const> tensors) override;
  int64_t storage_bytes(const runtime::TensorRef& tensor) override;
  void copy_strided(const runtime::TensorView& to, const runtime::TensorView& from) override;
  int64_t read_integer(const runtime::TensorView& from) override;
  void* current_stream(Device device) override;
  void drop_error() override;
  std::shared_ptr<runtime::RecordingPlace> recording_place(Device device, void* stream) override;
  std::unique_ptr<runtime::ExternCallee> resolve_extern(const plan::CallExtern& call) override;
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) override;
  void* find_symbol(const char* name) override;
};

// The process's: it holds nothing.
TorchHost& torch_host();

}  // namespace cxxinductor::torch_bridge
