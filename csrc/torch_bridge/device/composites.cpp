#include "torch_bridge/device/composites.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "torch_bridge/device/attention.h"
#include "torch_bridge/device/buffer.h"
#include "torch_bridge/device/registration.h"
#include "torch_bridge/record/in_place_views.h"

namespace cxxinductor::torch_bridge {
namespace {

using torch::jit::Stack;

std::optional<at::Tensor> optional_tensor(const c10::IValue& value) { return value.to<std::optional<at::Tensor>>(); }

// A sum with what need not be there.
at::Tensor plus(const at::Tensor& sum, const std::optional<at::Tensor>& term) { return term && term->defined() ? at::add(sum, *term) : sum; }

void become(const at::Tensor& self, const at::Tensor& view) {
  self.unsafeGetTensorImpl()->set_sizes_and_strides(view.sizes(), view.strides(), view.storage_offset());
}

// Views that differ in a bit of the tensor alone. PyTorch's kernels above ours resolve it where an op does not know it.
bool conjugate_view(Stack& stack) {
  const at::Tensor self = torch::jit::pop(stack).toTensor();
  at::Tensor view = make_device_view(self, form_of(self));
  view._set_conj(!self.is_conj());
  stack.emplace_back(std::move(view));
  return true;
}

bool negative_view(Stack& stack) {
  const at::Tensor self = torch::jit::pop(stack).toTensor();
  at::Tensor view = make_device_view(self, form_of(self));
  view._set_neg(!self.is_neg());
  stack.emplace_back(std::move(view));
  return true;
}

// Zeros for rows of nothing but -infinity, in place of NaN.
bool safe_softmax(Stack& stack) {
  const auto arguments = torch::jit::pop(stack, 3);
  const at::Tensor& x = arguments[0].toTensor();
  const int64_t dim = arguments[1].toInt();
  const at::Tensor result = at::softmax(x, dim, arguments[2].to<std::optional<at::ScalarType>>());
  const at::Tensor is_empty = at::all(at::eq(x, -std::numeric_limits<double>::infinity()), dim, /*keepdim=*/true);
  stack.emplace_back(at::masked_fill(result, is_empty, 0));
  return true;
}

bool are_all_true(Stack& stack) {
  stack.emplace_back(at::all(torch::jit::pop(stack).toTensor()));
  return true;
}

bool is_any_true(Stack& stack) {
  stack.emplace_back(at::any(torch::jit::pop(stack).toTensor()));
  return true;
}

// (gradient, v, g, norms, dim) -> (gradients of v and g), as sums and products.
bool weight_norm_backward(Stack& stack) {
  const auto arguments = torch::jit::pop(stack, 5);
  const auto [of_v, of_g] = at::_weight_norm_differentiable_backward(arguments[0].toTensor(), arguments[1].toTensor(), arguments[2].toTensor(),
                                                                     arguments[3].toTensor(), arguments[4].toInt());
  torch::jit::push(stack, of_v, of_g);
  return true;
}

// PyTorch's generic kernel: slices and a concatenation, and sizes of batches that stay on the CPU.
bool pack_padded_sequence(Stack& stack) {
  c10::Dispatcher::singleton().findSchemaOrThrow("aten::_pack_padded_sequence", "").callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd, stack);
  return true;
}

// Cells of recurrent layers: autograd takes the fused forms of GPUs for this device, which the CPU does not have. Of
// their parts the compiler makes one kernel. The workspace is ours, as the backward below reads it.
//
// (input gates, hidden gates, c, biases of both) -> (h, c, workspace). Gates: input, forget, cell, output.
bool lstm_cell(Stack& stack) {
  const auto arguments = torch::jit::pop(stack, 5);
  const at::Tensor &inputs = arguments[0].toTensor(), &hidden = arguments[1].toTensor(), &cx = arguments[2].toTensor();
  const at::Tensor sums = at::add(plus(inputs, optional_tensor(arguments[3])), plus(hidden, optional_tensor(arguments[4])));
  const auto parts = at::unsafe_chunk(sums, 4, 1);
  const at::Tensor in = at::sigmoid(parts[0]), forget = at::sigmoid(parts[1]), cell = at::tanh(parts[2]), out = at::sigmoid(parts[3]);
  const at::Tensor cy = at::add(at::mul(forget, cx), at::mul(in, cell));
  torch::jit::push(stack, at::mul(out, at::tanh(cy)), cy, at::cat({in, forget, cell, out}, 1));
  return true;
}

// Gradients through a sigmoid and a tanh of the value y.
at::Tensor through_sigmoid(const at::Tensor& gradient, const at::Tensor& y) { return at::sigmoid_backward(gradient, y); }
at::Tensor through_tanh(const at::Tensor& gradient, const at::Tensor& y) { return at::tanh_backward(gradient, y); }

// (gradients of h and c, c before and after, workspace, whether there are biases) -> (gradients of gates, c, biases)
bool lstm_cell_backward(Stack& stack) {
  const auto arguments = torch::jit::pop(stack, 6);
  const auto gh = optional_tensor(arguments[0]), gc = optional_tensor(arguments[1]);
  const at::Tensor &cx = arguments[2].toTensor(), &cy = arguments[3].toTensor();
  const auto parts = at::unsafe_chunk(arguments[4].toTensor(), 4, 1);
  const at::Tensor &in = parts[0], &forget = parts[1], &cell = parts[2], &out = parts[3];
  const at::Tensor tanh_c = at::tanh(cy);
  const at::Tensor g_h = gh && gh->defined() ? *gh : at::zeros_like(cy);
  const at::Tensor g_c = plus(through_tanh(at::mul(g_h, out), tanh_c), gc);
  const at::Tensor gates = at::cat({through_sigmoid(at::mul(g_c, cell), in), through_sigmoid(at::mul(g_c, cx), forget), through_tanh(at::mul(g_c, in), cell),
                                    through_sigmoid(at::mul(g_h, tanh_c), out)},
                                   1);
  torch::jit::push(stack, gates, at::mul(g_c, forget), arguments[5].toBool() ? gates.sum(0) : at::Tensor());
  return true;
}

// (input gates, hidden gates, h, biases of both) -> (h, workspace). Gates: reset, update, new.
bool gru_cell(Stack& stack) {
  const auto arguments = torch::jit::pop(stack, 5);
  const at::Tensor& hx = arguments[2].toTensor();
  const auto inputs = at::unsafe_chunk(plus(arguments[0].toTensor(), optional_tensor(arguments[3])), 3, 1);
  const auto hidden = at::unsafe_chunk(plus(arguments[1].toTensor(), optional_tensor(arguments[4])), 3, 1);
  const at::Tensor reset = at::sigmoid(at::add(hidden[0], inputs[0])), update = at::sigmoid(at::add(hidden[1], inputs[1]));
  const at::Tensor fresh = at::tanh(at::add(inputs[2], at::mul(hidden[2], reset)));
  torch::jit::push(stack, at::add(at::mul(at::sub(hx, fresh), update), fresh), at::cat({reset, update, fresh, hx, hidden[2]}, 1));
  return true;
}

// (gradient of h, workspace, whether there are biases) -> (gradients of input gates, hidden gates, h, biases of both)
bool gru_cell_backward(Stack& stack) {
  const auto arguments = torch::jit::pop(stack, 3);
  const at::Tensor& gradient = arguments[0].toTensor();
  const auto parts = at::unsafe_chunk(arguments[1].toTensor(), 5, 1);
  const at::Tensor &reset = parts[0], &update = parts[1], &fresh = parts[2], &hx = parts[3], &hidden = parts[4];
  const at::Tensor of_fresh = through_tanh(at::sub(gradient, at::mul(gradient, update)), fresh);
  const at::Tensor of_reset = through_sigmoid(at::mul(of_fresh, hidden), reset), of_update = through_sigmoid(at::mul(gradient, at::sub(hx, fresh)), update);
  const at::Tensor inputs = at::cat({of_reset, of_update, of_fresh}, 1), hiddens = at::cat({of_reset, of_update, at::mul(of_fresh, reset)}, 1);
  const bool has_bias = arguments[2].toBool();
  torch::jit::push(stack, inputs, hiddens, at::mul(gradient, update), has_bias ? inputs.sum(0) : at::Tensor(), has_bias ? hiddens.sum(0) : at::Tensor());
  return true;
}

// PyTorch hands channels-last tensors to the op itself on this device, as on the CPU; its kernels for CUDA take rows alone. The first
// `tensors` arguments are made contiguous there, as eager makes them.
template <size_t arguments, size_t tensors>
bool group_norm_of_rows(Stack& stack) {
  const at::Tensor& x = torch::jit::peek(stack, 0, arguments).toTensor();
  if (x.device().type() != c10::DeviceType::PrivateUse1 || !lazy_device().backing(x.device().index()).is_cuda()) return false;
  for (size_t i = 0; i < tensors; ++i) {
    c10::IValue& argument = torch::jit::peek(stack, i, arguments);
    argument = argument.toTensor().contiguous();
  }
  return false;
}

}  // namespace

Composite find_device_composite(std::string_view op) {
  static constexpr auto composites = std::to_array<std::pair<std::string_view, Composite>>({
      {"aten::_conj", conjugate_view},
      {"aten::_is_all_true", are_all_true},
      {"aten::_is_any_true", is_any_true},
      {"aten::_neg_view", negative_view},
      {"aten::_pack_padded_sequence", pack_padded_sequence},
      {"aten::_safe_softmax", safe_softmax},
      {"aten::_thnn_fused_gru_cell", gru_cell},
      {"aten::_thnn_fused_gru_cell_backward", gru_cell_backward},
      {"aten::_thnn_fused_lstm_cell", lstm_cell},
      {"aten::_thnn_fused_lstm_cell_backward_impl", lstm_cell_backward},
      {"aten::_weight_norm_interface_backward", weight_norm_backward},
      {"aten::native_group_norm", group_norm_of_rows<8, 1>},
      {"aten::native_group_norm_backward", group_norm_of_rows<10, 2>},
      {"aten::scaled_dot_product_attention", flash_attention},
  });
  const auto found = std::find_if(composites.begin(), composites.end(), [&](const auto& row) { return row.first == op; });
  if (found != composites.end()) return found->second;
  if (const Composite in_place = find_in_place_view<become>(op)) return in_place;
  // Of the recorder's those that need no tensors without memory.
  const bool is_shared = op == "aten::_convolution" || op == "aten::cudnn_batch_norm" || op == "aten::native_batch_norm";
  return is_shared ? find_composite(op) : nullptr;
}

}  // namespace cxxinductor::torch_bridge
