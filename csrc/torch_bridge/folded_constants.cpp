#include "torch_bridge/folded_constants.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "torch_bridge/torch_host.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {
namespace {

uint32_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : static_cast<uint32_t>(tensor._version());
}

}  // namespace

void FoldedConstants::append(std::vector<c10::IValue>& inputs) {
  const std::lock_guard lock(mutex_);
  if (!is_current(inputs)) fold(inputs);
  note_stream();
  inputs.insert(inputs.end(), folded_.begin(), folded_.end());
}

int64_t FoldedConstants::kept_bytes() const {
  int64_t bytes = 0;
  for (const plan::Output& output : plan().outputs) {
    const plan::Buffer& buffer = plan().buffers[output.buffer];
    bytes += buffer.bytes.is_constant() ? buffer.bytes.constant() : 0;
  }
  return bytes;
}

bool FoldedConstants::is_from(const Source& source, const at::Tensor& tensor) {
  return source.storage._unsafe_get_target() == tensor.storage().unsafeGetStorageImpl() &&
         source.data == tensor.const_data_ptr() && source.version == version_of(tensor);
}

bool FoldedConstants::is_current(const std::vector<c10::IValue>& inputs) const {
  if (sources_.empty()) return false;
  for (size_t i = 0; i < sources_.size(); ++i)
    if (!is_from(sources_[i], inputs[const_graph_.inputs[i]].toTensor())) return false;
  return true;
}

// The allocator gives the memory of the tensors away when they go, behind what their own stream does, unless it knows of the
// other streams that read them.
void FoldedConstants::note_stream() {
  const c10::Device device = folded_.at(0).device();
  if (!device.is_cuda()) return;
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  if (std::find(streams_.begin(), streams_.end(), stream) != streams_.end()) return;
  for (const at::Tensor& tensor : folded_) tensor.record_stream(stream);
  streams_.push_back(stream);
}

void FoldedConstants::fold(const std::vector<c10::IValue>& inputs) {
  sources_.clear();
  folded_.clear();  // first, so that the old and the new need no memory at once
  streams_.clear();
  std::vector<Source> sources;
  std::vector<runtime::Value> values;
  for (uint32_t position : const_graph_.inputs) {
    const at::Tensor& tensor = inputs[position].toTensor();
    sources.push_back({tensor.storage().getWeakStorageImpl(), tensor.const_data_ptr(), version_of(tensor)});
    values.emplace_back(to_ref(tensor));
  }
  for (runtime::Value& value : const_graph_.executable->run(torch_host(), std::move(values), {.check_inputs = false}))
    folded_.push_back(to_tensor(std::move(value.tensor)));
  // Later calls may run on other streams.
  if (const c10::Device device = folded_.at(0).device(); device.is_cuda()) {
    const c10::impl::VirtualGuardImpl streams(device.type());
    streams_.push_back(streams.getStream(device));  // that of their allocation
    streams.synchronizeStream(streams_.back());
  }
  sources_ = std::move(sources);
}

}  // namespace cxxinductor::torch_bridge
