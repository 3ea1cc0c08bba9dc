#include "torch_bridge/device/context_settings.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>
#include <c10/util/hash.h>

#include <type_traits>
#include <vector>

namespace cxxinductor::torch_bridge {
namespace {

struct Setting {
  int64_t (*get)(at::Context& context);
  void (*set)(at::Context& context, int64_t value);
};

template <auto getter, auto setter>
constexpr Setting setting() {
  return {[](at::Context& context) { return static_cast<int64_t>((context.*getter)()); },
          [](at::Context& context, int64_t value) {
            using Value = std::remove_cvref_t<decltype((context.*getter)())>;
            (context.*setter)(static_cast<Value>(value));
          }};
}

template <at::Float32Backend backend, at::Float32Op op>
constexpr Setting precision() {
  return {[](at::Context& context) { return static_cast<int64_t>(context.float32Precision(backend, op)); },
          [](at::Context& context, int64_t value) { context.setFloat32Precision(backend, op, static_cast<at::Float32Precision>(value)); }};
}

template <auto getter, auto setter>
constexpr Setting reduced_sums() {
  return {[](at::Context& context) { return static_cast<int64_t>((context.*getter)()); },
          [](at::Context& context, int64_t value) {
            using enum at::CuBLASReductionOption;
            const auto option = static_cast<at::CuBLASReductionOption>(value);
            (context.*setter)(option == AllowReducedPrecisionWithSplitK, option != DisallowReducedPrecisionDisallowSplitK);
          }};
}

using at::Context;
using enum at::Float32Backend;
using enum at::Float32Op;

constexpr int bits_of_attention_backend = 3;

int64_t attention_order(Context& context) {
  int64_t order = 0;
  for (const at::SDPBackend backend : context.sDPPriorityOrder()) order = (order << bits_of_attention_backend) + static_cast<int64_t>(backend);
  return order;
}

void set_attention_order(Context& context, int64_t order) {
  std::vector<int64_t> backends(at::num_sdp_backends);
  for (auto backend = backends.rbegin(); backend != backends.rend(); ++backend) {
    *backend = order & ((1 << bits_of_attention_backend) - 1);
    order >>= bits_of_attention_backend;
  }
  context.setSDPPriorityOrder(backends);
}

// A precision that follows a more general one is read, and set back, as what that one says.
constexpr std::array settings{
    setting<&Context::userEnabledCuDNN, &Context::setUserEnabledCuDNN>(),
    setting<&Context::benchmarkCuDNN, &Context::setBenchmarkCuDNN>(),
    setting<&Context::benchmarkLimitCuDNN, &Context::setBenchmarkLimitCuDNN>(),
    setting<&Context::deterministicCuDNN, &Context::setDeterministicCuDNN>(),
    setting<&Context::userEnabledMkldnn, &Context::setUserEnabledMkldnn>(),
    setting<&Context::deterministicMkldnn, &Context::setDeterministicMkldnn>(),
    setting<&Context::userEnabledNNPACK, &Context::setUserEnabledNNPACK>(),
    setting<&Context::deterministicFillUninitializedMemory, &Context::setDeterministicFillUninitializedMemory>(),
    setting<&Context::userEnabledFlashSDP, &Context::setSDPUseFlash>(),
    setting<&Context::userEnabledFA3SDP, &Context::setSDPUseFA3>(),
    setting<&Context::userEnabledMemEfficientSDP, &Context::setSDPUseMemEfficient>(),
    setting<&Context::userEnabledMathSDP, &Context::setSDPUseMath>(),
    setting<&Context::userEnabledCuDNNSDP, &Context::setSDPUseCuDNN>(),
    setting<&Context::userEnabledOverrideableSDP, &Context::setSDPUseOverrideable>(),
    setting<&Context::allowFP16BF16ReductionMathSDP, &Context::setAllowFP16BF16ReductionMathSDP>(),
    setting<&Context::linalgPreferredBackend, &Context::setLinalgPreferredBackend>(),
    setting<&Context::blasPreferredBackend, &Context::setBlasPreferredBackend>(),
    setting<&Context::allowFP16AccumulationCuBLAS, &Context::setAllowFP16AccumulationCuBLAS>(),
    setting<&Context::allowFP16ReductionCPU, &Context::setAllowFP16ReductionCPU>(),
    reduced_sums<&Context::allowFP16ReductionCuBLAS, &Context::setAllowFP16ReductionCuBLAS>(),
    reduced_sums<&Context::allowBF16ReductionCuBLAS, &Context::setAllowBF16ReductionCuBLAS>(),
    precision<CUDA, CONV>(),
    precision<CUDA, RNN>(),
    precision<CUDA, MATMUL>(),
    precision<MKLDNN, CONV>(),
    precision<MKLDNN, RNN>(),
    precision<MKLDNN, MATMUL>(),
    Setting{attention_order, set_attention_order},
    Setting{[](Context& context) -> int64_t { return (context.deterministicAlgorithms() ? 1 : 0) + (context.deterministicAlgorithmsWarnOnly() ? 2 : 0); },
            [](Context& context, int64_t value) { context.setDeterministicAlgorithms((value & 1) != 0, (value & 2) != 0); }},
    Setting{[](Context&) { return static_cast<int64_t>(c10::get_default_dtype_as_scalartype()); },
            [](Context&, int64_t value) { c10::set_default_dtype(c10::scalarTypeToTypeMeta(static_cast<c10::ScalarType>(value))); }},
};

}  // namespace

static_assert(settings.size() == ContextSettings::count);

ContextSettings ContextSettings::current() {
  ContextSettings current;
  for (size_t i = 0; i < settings.size(); ++i) current.values_[i] = settings[i].get(at::globalContext());
  return current;
}

bool ContextSettings::are_current() const {
  for (size_t i = 0; i < settings.size(); ++i)
    if (values_[i] != settings[i].get(at::globalContext())) return false;
  return true;
}

int64_t ContextSettings::hash() const {
  size_t hash = 0;
  for (const int64_t value : values_) hash = c10::hash_combine(hash, std::hash<int64_t>()(value));
  return static_cast<int64_t>(hash);
}

void ContextSettingsScope::change(const ContextSettings& from, const ContextSettings& to) {
  for (size_t i = 0; i < settings.size(); ++i)
    if (from.values_[i] != to.values_[i]) settings[i].set(at::globalContext(), to.values_[i]);
}

ContextSettingsScope::ContextSettingsScope(const ContextSettings& settings) : inside_(settings), before_(ContextSettings::current()) {
  change(before_, inside_);
}

ContextSettingsScope::~ContextSettingsScope() { change(inside_, before_); }

}  // namespace cxxinductor::torch_bridge
