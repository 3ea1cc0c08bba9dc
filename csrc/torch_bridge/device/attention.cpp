#include "torch_bridge/device/attention.h"

#include <ATen/ATen.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>

#include <optional>

#include "torch_bridge/device/registration.h"

namespace cxxinductor::torch_bridge {
namespace {

// A tensor without memory on the backing device: choices look at metadata alone.
at::Tensor on_backing(const at::Tensor& tensor, c10::Device backing) {
  if (!tensor.defined() || tensor.device().type() != c10::DeviceType::PrivateUse1) return tensor;
  c10::Storage storage(c10::Storage::use_byte_size_t(), 0, c10::DataPtr(nullptr, backing), nullptr, false);
  const c10::DispatchKeySet keys(c10::computeDispatchKey(std::nullopt, std::nullopt, backing));
  at::Tensor shown = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, tensor.dtype());
  shown.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return shown.set_requires_grad(tensor.requires_grad());
}

int64_t choose(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const std::optional<at::Tensor>& mask, double dropout, bool is_causal,
               std::optional<double> scale, bool enable_gqa) {
  const c10::Device backing = lazy_device().backing(query.device().index());
  const std::optional<at::Tensor> shown_mask = mask ? std::optional(on_backing(*mask, backing)) : std::nullopt;
  return at::_fused_sdp_choice(on_backing(query, backing), on_backing(key, backing), on_backing(value, backing), shown_mask, dropout, is_causal, scale,
                               enable_gqa);
}

// Heads of a multiple of 8 elements, with zeros.
at::Tensor padded(const at::Tensor& tensor) {
  const int64_t missing = (8 - tensor.size(-1) % 8) % 8;
  return missing == 0 ? tensor : at::pad(tensor, {0, missing});
}

}  // namespace

void register_attention_choice() { at::native::_fused_sdp_choice_stub.set_privateuse1_dispatch_ptr(&choose); }

bool flash_attention(torch::jit::Stack& stack) {
  constexpr size_t count = 8;
  const auto argument = [&](size_t i) -> const c10::IValue& { return torch::jit::peek(stack, i, count); };
  const at::Tensor query = argument(0).toTensor(), key = argument(1).toTensor(), value = argument(2).toTensor();
  if (query.device().type() != c10::DeviceType::PrivateUse1 || !lazy_device().backing(query.device().index()).is_cuda() || query.dim() != 4) return false;
  const auto mask = argument(3).to<std::optional<at::Tensor>>();
  const double dropout = argument(4).toDouble();
  const bool is_causal = argument(5).toBool(), enable_gqa = argument(7).toBool();
  const auto scale = argument(6).to<std::optional<double>>();
  const int64_t choice = choose(query, key, value, mask, dropout, is_causal, scale, enable_gqa);
  if (choice != static_cast<int64_t>(at::SDPBackend::flash_attention)) return false;
  const double factor = sdp::calculate_scale(query, scale).guard_float(__FILE__, __LINE__);
  const at::Tensor output =
      std::get<0>(at::_scaled_dot_product_flash_attention(padded(query), padded(key), padded(value), dropout, is_causal, /*return_debug_mask=*/false, factor));
  const at::Tensor result = output.slice(-1, 0, query.size(-1));
  torch::jit::drop(stack, count);
  stack.emplace_back(result);
  return true;
}

}  // namespace cxxinductor::torch_bridge
