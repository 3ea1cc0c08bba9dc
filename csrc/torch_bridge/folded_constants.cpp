#include "torch_bridge/folded_constants.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "support/fork_locks.h"
#include "torch_bridge/torch_host.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {

void FoldedConstants::append(std::vector<c10::IValue>& inputs, bool captured) {
  std::shared_ptr<const Prepared> current = load();
  if (!current || !is_current(*current, inputs)) {
    const bool counted = std::ranges::none_of(const_graph_.inputs, [&](uint32_t input) { return inputs[input].toTensor().is_inference(); });
    by_each_call_.store(!counted, std::memory_order_relaxed);
    if (captured || !counted) {
      std::vector<at::Tensor> tensors = compute(inputs);
      inputs.insert(inputs.end(), std::move_iterator(tensors.begin()), std::move_iterator(tensors.end()));
      return;
    }
    current.reset();
    store(nullptr);  // first, so that the old and the new need no memory at once
    current = fold(inputs);
    store(current);
  }
  captured ? keep_for_captured(current) : note_streams(*current);
  inputs.insert(inputs.end(), current->tensors.begin(), current->tensors.end());
}

int64_t FoldedConstants::kept_bytes() const {
  if (is_folded_by_each_call()) return 0;
  int64_t bytes = 0;
  for (const plan::Output& output : plan().outputs) {
    const plan::Buffer& buffer = plan().buffers[output.buffer];
    bytes += buffer.bytes.is_constant() ? buffer.bytes.constant() : 0;
  }
  return bytes;
}

std::vector<at::Tensor> FoldedConstants::tensors() const {
  std::vector<std::shared_ptr<const Prepared>> sets;
  {
    const ForkGuard guard(ForkLock::Leaf);
    sets = captured_;
    if (current_ && std::ranges::find(sets, current_) == sets.end()) sets.insert(sets.begin(), current_);
  }
  std::vector<at::Tensor> all;
  for (const auto& set : sets) all.insert(all.end(), set->tensors.begin(), set->tensors.end());
  return all;
}

bool FoldedConstants::is_from(const Source& source, const at::Tensor& tensor) {
  return !tensor.is_inference() && source.storage._unsafe_get_target() == tensor.storage().unsafeGetStorageImpl() && source.data == tensor.const_data_ptr() &&
         source.version == static_cast<uint32_t>(tensor._version());
}

bool FoldedConstants::is_current(const Prepared& prepared, const std::vector<c10::IValue>& inputs) const {
  for (size_t i = 0; i < prepared.sources.size(); ++i)
    if (!is_from(prepared.sources[i], inputs[const_graph_.inputs[i]].toTensor())) return false;
  return true;
}

// The allocator gives the memory of a tensor away when it goes, behind what the stream of its allocation does, unless it knows
// of the other streams that read it.
void FoldedConstants::note_streams(const Prepared& prepared) {
  const at::Tensor* last = nullptr;  // of one device there may be many, one after the other
  for (const at::Tensor& tensor : prepared.tensors) {
    if (tensor.is_cpu() || (last && last->device() == tensor.device())) continue;
    last = &tensor;
    const c10::Stream stream = c10::impl::VirtualGuardImpl(tensor.device().type()).getStream(tensor.device());
    {
      const ForkGuard guard(ForkLock::Leaf);
      if (std::ranges::find(prepared.streams, stream) != prepared.streams.end()) continue;
    }
    for (const at::Tensor& other : prepared.tensors)
      if (other.device() == stream.device()) other.record_stream(stream);
    const ForkGuard guard(ForkLock::Leaf);
    prepared.streams.push_back(stream);
  }
}

std::shared_ptr<const FoldedConstants::Prepared> FoldedConstants::load() const {
  const ForkGuard guard(ForkLock::Leaf);
  return current_;
}

void FoldedConstants::store(std::shared_ptr<const Prepared> prepared) {
  const ForkGuard guard(ForkLock::Leaf);
  current_.swap(prepared);  // what it was goes after the lock is free: `prepared` outlives the guard
}

// A CUDA graph of the program gets its tensors' addresses, and tells us neither when it runs nor when it goes.
void FoldedConstants::keep_for_captured(const std::shared_ptr<const Prepared>& prepared) {
  const ForkGuard guard(ForkLock::Leaf);
  if (std::ranges::find(captured_, prepared) == captured_.end()) captured_.push_back(prepared);
}

// Nothing of it is recorded: it runs seldom, or inside of a recording.
std::vector<at::Tensor> FoldedConstants::compute(const std::vector<c10::IValue>& inputs) const {
  std::vector<runtime::Value> values;
  for (const uint32_t input : const_graph_.inputs) values.emplace_back(to_ref(inputs[input].toTensor()));
  std::vector<at::Tensor> tensors;
  for (runtime::Value& value : const_graph_.executable->run(torch_host(), std::move(values), {.check_inputs = false, .graphs = false}))
    tensors.push_back(to_tensor(std::move(value.tensor)));
  return tensors;
}

std::shared_ptr<const FoldedConstants::Prepared> FoldedConstants::fold(const std::vector<c10::IValue>& inputs) const {
  const auto made = std::make_shared<Prepared>();
  for (const uint32_t input : const_graph_.inputs) {
    const at::Tensor& tensor = inputs[input].toTensor();
    made->sources.push_back({tensor.storage().getWeakStorageImpl(), tensor.const_data_ptr(), static_cast<uint32_t>(tensor._version())});
  }
  made->tensors = compute(inputs);
  // Later calls may run on other streams.
  std::set<Device> devices;
  for (const at::Tensor& tensor : made->tensors)
    if (!tensor.is_cpu()) devices.insert(from_torch(tensor.device()));
  for (Device device : devices) {
    const c10::Device torch_device = to_torch(device);
    const c10::impl::VirtualGuardImpl streams(torch_device.type());
    streams.synchronizeStream(streams.getStream(torch_device));
  }
  return made;
}

}  // namespace cxxinductor::torch_bridge
