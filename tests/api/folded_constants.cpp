// Constants that are folded once: when they are computed again, and which of them stay for captured calls.
#include "torch_bridge/folded_constants.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "ir/graph/text.h"
#include "torch_bridge/providers.h"
#include "torch_bridge/torch_host.h"
#include "unit/catch.h"

namespace {

using namespace cxxinductor;
using torch_bridge::FoldedConstants;

// One constant: four times the second input.
FoldedConstants four_times_the_second() {
  driver::Request request;
  request.graph = graph::parse(R"(graph @four_times(%w: f32[4]) {
  %0: f32[4] = full(4)
  %1 = mul(%w, %0)
  return %1
})");
  request.targets = torch_bridge::targets_for({Device()}, Options());
  request.host = &torch_bridge::torch_host();
  request.make_provider = [](const plan::Plan& plan, const Targets& targets) {
    return torch_bridge::make_provider(plan, targets, {}, torch_bridge::torch_host());
  };
  return FoldedConstants({driver::compile(std::move(request)).executable, {}, {1}});
}

at::Tensor appended(FoldedConstants& folded, const at::Tensor& weight, bool captured = false) {
  std::vector<c10::IValue> inputs{at::zeros({2}), weight};
  folded.append(inputs, captured);
  REQUIRE(inputs.size() == 3);
  return inputs[2].toTensor();
}

float first(const at::Tensor& tensor) { return tensor[0].item<float>(); }

}  // namespace

TEST_CASE("constants are folded once, and again after a write") {
  FoldedConstants folded = four_times_the_second();
  const at::Tensor weight = at::ones({4});
  CHECK(folded.tensors().empty());
  const at::Tensor before = appended(folded, weight);
  CHECK(first(before) == 4);
  CHECK(appended(folded, weight).is_same(before));
  weight.mul_(3);
  CHECK(first(appended(folded, weight)) == 12);
  CHECK(folded.tensors().size() == 1);
  CHECK_FALSE(folded.is_folded_by_each_call());
}

TEST_CASE("what follows from tensors without a count of writes is computed by each call") {
  FoldedConstants folded = four_times_the_second();
  const c10::InferenceMode mode;
  const at::Tensor weight = at::ones({4});
  CHECK(first(appended(folded, weight)) == 4);
  weight.mul_(3);
  CHECK(first(appended(folded, weight)) == 12);
  CHECK(folded.is_folded_by_each_call());
  CHECK(folded.tensors().empty());
  CHECK(folded.kept_bytes() == 0);
}

TEST_CASE("what a captured call reads stays after a write") {
  FoldedConstants folded = four_times_the_second();
  const at::Tensor weight = at::ones({4});
  appended(folded, weight);
  const bool captured = GENERATE(false, true);
  at::Tensor read = appended(folded, weight, captured);
  const c10::weak_intrusive_ptr<c10::StorageImpl> storage = read.storage().getWeakStorageImpl();
  read.reset();
  for (int i = 0; i < 2; ++i) {
    weight.mul_(3);
    appended(folded, weight);
  }
  CHECK(storage.expired() == !captured);
  CHECK(folded.tensors().size() == (captured ? 2 : 1));  // of now, and those that the captured graph reads
}

TEST_CASE("a captured call that finds nothing current computes for itself") {
  FoldedConstants folded = four_times_the_second();
  const at::Tensor weight = at::ones({4});
  CHECK(first(appended(folded, weight, true)) == 4);
  CHECK(folded.tensors().empty());
  const at::Tensor before = appended(folded, weight);
  weight.mul_(3);
  CHECK(first(appended(folded, weight, true)) == 12);
  REQUIRE(folded.tensors().size() == 1);
  CHECK(folded.tensors()[0].is_same(before));
  CHECK_FALSE(folded.is_folded_by_each_call());
}
