#include "api/weights.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <map>
#include <utility>

#include "torch_bridge/types.h"

namespace cxxinductor::api {

std::vector<at::Tensor> make_weights(const readers::Program& program, const Bytes& file) {
  const model::CallGraph& calls = program.calls;
  // By where it lies in the file, and device: tied weights are on one.
  std::map<std::pair<size_t, Device>, at::Tensor> storages;
  std::vector<at::Tensor> weights;
  for (const readers::WeightRef& weight : program.weights) {
    const Device device = calls.values[calls.inputs[weight.input]].device;
    auto [storage, added] = storages.try_emplace({weight.byte_offset, device});
    if (added) {
      // Bytes: a storage may hold tensors of several dtypes.
      const at::Tensor mapped = at::from_blob(
          file.span.data() + weight.byte_offset, {static_cast<int64_t>(weight.byte_size)}, [owner = file.owner](void*) {},
          at::TensorOptions().dtype(at::kByte));
      storage->second = mapped.to(torch_bridge::to_torch(device));
    }
    at::Tensor tensor = at::empty({0}, storage->second.options().dtype(torch_bridge::to_torch(weight.dtype)));
    tensor.set_(storage->second.storage(), weight.storage_offset, weight.sizes, weight.strides);
    weights.push_back(std::move(tensor));
  }
  return weights;
}

at::Tensor storage_bytes(const at::Tensor& tensor) {
  at::Tensor bytes = at::empty({0}, tensor.options().dtype(at::kByte));
  bytes.set_(tensor.storage(), 0, {static_cast<int64_t>(tensor.storage().nbytes())}, {1});
  return bytes.cpu();
}

}  // namespace cxxinductor::api
