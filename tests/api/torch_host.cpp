// Who holds what the runtime is given as tensors of torch's. Those that Python has seen: tests/python/test_cuda_graphs.py.
#include "torch_bridge/torch_host.h"

#include <ATen/ATen.h>

#include "unit/catch.h"

namespace cxxinductor::torch_bridge {

TEST_CASE("a tensor is shared while somebody else holds it, or another on its memory", "[torch_host]") {
  at::Tensor tensor = at::zeros({4});
  const runtime::TensorRef held = to_ref(tensor);
  CHECK(torch_host().is_shared(held));
  at::Tensor view = tensor.view({2, 2});
  tensor.reset();
  CHECK(torch_host().is_shared(held));
  view.reset();
  CHECK_FALSE(torch_host().is_shared(held));
}

}  // namespace cxxinductor::torch_bridge
