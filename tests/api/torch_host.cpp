// Who holds what the runtime is given as tensors of torch's. Those that Python has seen: tests/python/test_cuda_graphs.py.
#include "torch_bridge/torch_host.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <vector>

#include "unit/catch.h"

namespace cxxinductor::torch_bridge {

namespace {

bool is_held(const runtime::TensorRef& tensor) {
  const runtime::TensorRef* const one = &tensor;
  return torch_host().held_by_others({&one, 1})[0];
}

}  // namespace

TEST_CASE("others hold a tensor as long as they hold it or another on its memory", "[torch_host]") {
  at::Tensor tensor = at::zeros({4});
  const runtime::TensorRef ours = to_ref(tensor);
  CHECK(is_held(ours));
  at::Tensor view = tensor.view({2, 2});
  tensor.reset();
  CHECK(is_held(ours));
  view.reset();
  CHECK_FALSE(is_held(ours));
}

TEST_CASE("a call's own tensors on one memory are not those of others", "[torch_host]") {
  const c10::InferenceMode guard;  // autograd's views hold their base
  at::Tensor whole = at::zeros({4});
  const std::vector<runtime::TensorRef> ours{to_ref(whole), to_ref(whole), to_ref(whole.narrow(0, 0, 2)), to_ref(whole.narrow(0, 2, 2))};
  const auto held = [&] { return torch_host().held_by_others(std::vector<const runtime::TensorRef*>{&ours[0], &ours[1], &ours[2], &ours[3]}); };
  CHECK(held() == std::vector<bool>{true, true, true, true});
  whole.reset();
  CHECK(held() == std::vector<bool>(4));
}

}  // namespace cxxinductor::torch_bridge
