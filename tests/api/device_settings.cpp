// PyTorch's settings on the recorded device: those of the moment when a call was made count, not those of the sync point.
#include <ATen/Context.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/recorded_device.h"
#include "torch_bridge/device/context_settings.h"
#include "unit/catch.h"

namespace {

using cxxinductor::device_counters;
using cxxinductor::torch_bridge::ContextSettings;

// What a library would see of them while a matrix product runs, by product.
class SeenByProducts {
 public:
  SeenByProducts() {
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
          const at::Context& context = at::globalContext();
          if (std::string_view(function.name()).starts_with("aten::mm") && function.inputs()[0].toTensor().is_cpu())
            seen.push_back(fmt::format("cudnn {}, deterministic {}, rounded {}", context.userEnabledCuDNN(), context.deterministicAlgorithms(), is_rounded()));
          return nullptr;
        })
            .needsInputs(true)
            .scopes({at::RecordScope::FUNCTION}));
    seen.clear();
  }
  ~SeenByProducts() { at::removeCallback(handle_); }
  SeenByProducts(const SeenByProducts&) = delete;
  SeenByProducts& operator=(const SeenByProducts&) = delete;

  static inline std::vector<std::string> seen;

 private:
  static bool is_rounded() { return at::globalContext().float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL) == at::Float32Precision::TF32; }
  at::CallbackHandle handle_;
};

void set_precision(at::Float32Precision precision) { at::globalContext().setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL, precision); }

}  // namespace

TEST_CASE("calls run with the settings that they were made under") {
  const at::Tensor x = at::ones({3, 3}, recorded_device());
  for (int step = 0; step < 4; ++step) {  // recorded, then compared with what was recorded
    const auto before = device_counters();
    const SeenByProducts products;
    at::globalContext().setUserEnabledCuDNN(false);
    const at::Tensor without = x.mm(x);
    at::globalContext().setUserEnabledCuDNN(true);
    const at::Tensor usual = x.mm(x);
    set_precision(at::Float32Precision::TF32);
    const at::Tensor rounded = x.mm(x);
    set_precision(at::Float32Precision::NONE);
    at::globalContext().setDeterministicAlgorithms(true, false);
    const at::Tensor deterministic = x.mm(x);
    at::globalContext().setDeterministicAlgorithms(false, false);
    for (const at::Tensor& product : {without, usual, rounded, deterministic}) CHECK(product.cpu()[0][0].item<float>() == 3);
    CHECK(products.seen == std::vector<std::string>{"cudnn false, deterministic false, rounded false", "cudnn true, deterministic false, rounded false",
                                                    "cudnn true, deterministic false, rounded true", "cudnn true, deterministic true, rounded false"});
    CHECK_FALSE(at::globalContext().deterministicAlgorithms());
    CHECK(device_counters().through_aten == before.through_aten);
  }
}

TEST_CASE("results have the default dtype of the moment when they were recorded") {
  const at::Tensor x = at::arange(4, at::TensorOptions(recorded_device()).dtype(at::kLong));
  for (int step = 0; step < 3; ++step)
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      at::set_default_dtype(c10::scalarTypeToTypeMeta(dtype));
      const at::Tensor half = x / 2;
      at::set_default_dtype(c10::scalarTypeToTypeMeta(at::kFloat));
      CHECK(half.scalar_type() == dtype);
      CHECK(half.cpu().equal(at::arange(4, at::TensorOptions(dtype)) / 2));
    }
}

TEST_CASE("settings are what they were after a scope of others") {
  const ContextSettings before = ContextSettings::current();
  at::Context& context = at::globalContext();
  context.setBenchmarkCuDNN(true);
  context.setAllowBF16ReductionCuBLAS(false, true);
  context.setSDPPriorityOrder({3, 2, 1, 0, 4});
  context.setDeterministicAlgorithms(true, true);
  const ContextSettings changed = ContextSettings::current();
  CHECK(changed != before);
  {
    const cxxinductor::torch_bridge::ContextSettingsScope scope(before);
    CHECK(before.are_current());
    CHECK_FALSE(context.benchmarkCuDNN());
    {
      const cxxinductor::torch_bridge::ContextSettingsScope inner(changed);
      CHECK(changed.are_current());
      CHECK(context.allowBF16ReductionCuBLAS() == at::CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK);
      CHECK(context.sDPPriorityOrder()[0] == at::SDPBackend::cudnn_attention);
      CHECK(context.deterministicAlgorithmsWarnOnly());
    }
    CHECK(before.are_current());
  }
  CHECK(changed.are_current());
  context.setBenchmarkCuDNN(false);
  context.setAllowBF16ReductionCuBLAS(true, true);
  context.setSDPPriorityOrder({1, 2, 0, 3, 4});
  context.setDeterministicAlgorithms(false, false);
  CHECK(before.are_current());
}

TEST_CASE("names that are none are refused before the device is registered") {
  for (const char* name : {"", "cpu", "meta", "cuda:0", "my dev", "9x", "privateuseone"})
    CHECK_THROWS_AS(cxxinductor::register_device(name, c10::kCPU), cxxinductor::Error);
  CHECK(recorded_device().is_privateuseone());
}
