#include "torch_bridge/record/composites.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/attention_mask.h"
#include "support/error.h"
#include "torch_bridge/record/fake_tensor.h"
#include "torch_bridge/record/in_place_views.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {
namespace {

using torch::jit::Stack;

// The last `count` items of the stack, which they leave.
template <size_t count>
std::array<c10::IValue, count> take(Stack& stack) {
  std::array<c10::IValue, count> values;
  for (size_t i = count; i-- > 0;) values[i] = torch::jit::pop(stack);
  return values;
}

// What it asserts is known of every run.
bool assert_tensor_metadata(Stack& stack) {
  const auto [tensor, sizes, strides, dtype, device, layout] = take<6>(stack);
  const at::Tensor& x = tensor.toTensor();
  if (!dtype.isNone() && x.scalar_type() != dtype.toScalarType())
    throw_user_error("the model asserts a tensor of dtype {}, found {}", c10::toString(dtype.toScalarType()), c10::toString(x.scalar_type()));
  if (!device.isNone() && x.device().type() != device.toDevice().type())
    throw_user_error("the model asserts a tensor on {}, found one on {}", device.toDevice().str(), x.device().str());
  if (!sizes.isNone()) TORCH_CHECK(x.sym_sizes().equals(sizes.toSymIntVector()), "the model asserts other sizes of a tensor");
  return true;
}

// one_hot(self, num_classes): ATen checks the elements, and finds the number of classes where it is -1.
bool one_hot(Stack& stack) {
  const c10::SymInt classes = torch::jit::peek(stack, 1, 2).toSymInt();
  if (classes.maybe_as_int().value_or(0) == -1) return false;
  const auto [self, count] = take<2>(stack);
  const at::Tensor& x = self.toTensor();
  const at::Tensor numbers = at::arange(at::Scalar(classes), x.options());
  torch::jit::push(stack, at::eq(x.unsqueeze(-1), numbers).to(at::kLong));
  return true;
}

bool has_symbolic_sizes(const at::Tensor& tensor) { return tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides(); }

// The leading dimensions of both, as broadcast.
c10::SymDimVector broadcast_batch(const at::Tensor& a, const at::Tensor& b) {
  const auto of_a = a.sym_sizes().slice(0, static_cast<size_t>(a.dim()) - 2), of_b = b.sym_sizes().slice(0, static_cast<size_t>(b.dim()) - 2);
  const size_t rank = std::max(of_a.size(), of_b.size());
  c10::SymDimVector sizes(rank, 1);
  for (size_t d = 0; d < rank; ++d) {
    const c10::SymInt one(1);
    const c10::SymInt& from_a = d + of_a.size() < rank ? one : of_a[d + of_a.size() - rank];
    const c10::SymInt& from_b = d + of_b.size() < rank ? one : of_b[d + of_b.size() - rank];
    sizes[d] = TORCH_GUARD_OR_FALSE(from_a.sym_eq(1)) ? from_b : from_a;
  }
  return sizes;
}

c10::SymInt product_of(c10::SymIntArrayRef sizes) {
  c10::SymInt product = 1;
  for (const c10::SymInt& size : sizes) product = product * size;
  return product;
}

c10::SymDimVector with(c10::SymDimVector sizes, std::initializer_list<c10::SymInt> last) {
  sizes.append(last.begin(), last.end());
  return sizes;
}

// Of a matrix, or vector, with a stack of them: the stack's rows in one product.
at::Tensor folded_product(const at::Tensor& stacked, const at::Tensor& other) {
  const c10::SymInt columns = stacked.sym_size(-1);
  c10::SymDimVector sizes(stacked.sym_sizes().begin(), stacked.sym_sizes().end() - 1);
  const at::Tensor rows = stacked.reshape_symint({product_of(sizes), columns});
  if (other.dim() == 1) return at::_unsafe_view_symint(at::mv(rows, other), sizes);
  return at::_unsafe_view_symint(at::mm(rows, other), with(sizes, {other.sym_size(1)}));
}

// matmul above rank 2 reads sizes as numbers, to choose between one product and a batched one by strides.
bool matmul(Stack& stack) {
  const at::Tensor a = torch::jit::peek(stack, 0, 2).toTensor(), b = torch::jit::peek(stack, 1, 2).toTensor();
  if (!(has_symbolic_sizes(a) || has_symbolic_sizes(b)) || (a.dim() <= 2 && b.dim() <= 2) || a.dim() == 0 || b.dim() == 0) return false;
  torch::jit::drop(stack, 2);
  if (b.dim() <= 2) {
    torch::jit::push(stack, folded_product(a, b));
    return true;
  }
  const at::Tensor left = a.dim() == 1 ? a.unsqueeze(0) : a;
  const c10::SymDimVector batch = broadcast_batch(left, b);
  const c10::SymInt rows = left.sym_size(-2), inner = left.sym_size(-1), columns = b.sym_size(-1), count = product_of(batch);
  const at::Tensor x = left.expand_symint(with(batch, {rows, inner})).reshape_symint({count, rows, inner});
  const at::Tensor y = b.expand_symint(with(batch, {inner, columns})).reshape_symint({count, inner, columns});
  const at::Tensor result = at::_unsafe_view_symint(at::bmm(x, y), with(batch, {rows, columns}));
  torch::jit::push(stack, a.dim() == 1 ? result.squeeze(-2) : result);
  return true;
}

// What traces of TorchScript call: a convolution, and flags of cuDNN.
template <size_t arguments>
bool convolution(Stack& stack) {
  auto taken = take<arguments>(stack);
  torch::jit::push(
      stack, at::convolution_symint(taken[0].toTensor(), taken[1].toTensor(), taken[2].template to<std::optional<at::Tensor>>(), taken[3].toSymIntVector(),
                                    taken[4].toSymIntVector(), taken[5].toSymIntVector(), taken[6].toBool(), taken[7].toSymIntVector(), taken[8].toSymInt()));
  return true;
}

// Of nn.MultiheadAttention in evaluation mode, without a mask and without weights as a result. Arguments: query, key, value, embedding
// size, heads, weight and bias of the input's projection and of the output's, mask, whether weights are a result ...
bool multi_head_attention(Stack& stack) {
  constexpr size_t count = 13;
  const auto argument = [&](size_t i) -> const c10::IValue& { return torch::jit::peek(stack, i, count); };
  const at::Tensor query = argument(0).toTensor();
  const bool is_self_attention = query.is_same(argument(1).toTensor()) && query.is_same(argument(2).toTensor()) && query.dim() == 3;
  if (!is_self_attention || !argument(9).isNone() || argument(10).toBool()) return false;
  const c10::SymInt size = argument(3).toSymInt(), heads = argument(4).toSymInt(), batch = query.sym_size(0), length = query.sym_size(1);
  const auto projected = at::linear(query, argument(5).toTensor(), argument(6).toTensor()).chunk(3, -1);
  const auto of_heads = [&](const at::Tensor& x) { return x.view_symint({batch, length, heads, size / heads}).transpose(1, 2); };
  const at::Tensor attended = at::scaled_dot_product_attention(of_heads(projected[0]), of_heads(projected[1]), of_heads(projected[2]));
  const at::Tensor result = at::linear(attended.transpose(1, 2).reshape_symint({batch, length, size}), argument(7).toTensor(), argument(8).toTensor());
  torch::jit::drop(stack, count);
  torch::jit::push(stack, result, at::Tensor());
  return true;
}

void become(const at::Tensor& self, const at::Tensor& view) { as_fake(self)->become(*as_fake(view)); }

// Where the sizes are those that it has. Others would need memory that views of it do not show.
bool resize(Stack& stack) {
  const auto [self, sizes, format] = take<3>(stack);
  const at::Tensor& x = self.toTensor();
  if (!format.isNone() || !x.sym_sizes().equals(sizes.toSymIntVector())) throw_unsupported("aten::resize_: it changes the sizes of a tensor");
  torch::jit::push(stack, x);
  return true;
}

// The schemas of batch norms do not state that they write running statistics. True: the call was made by one that does.
template <size_t arguments>
bool batch_norm_that_writes(Stack& stack, size_t reserve) {
  const at::Tensor mean = torch::jit::peek(stack, 3, arguments).to<std::optional<at::Tensor>>().value_or(at::Tensor());
  const at::Tensor variance = torch::jit::peek(stack, 4, arguments).to<std::optional<at::Tensor>>().value_or(at::Tensor());
  if (!torch::jit::peek(stack, 5, arguments).toBool() || !mean.defined() || !variance.defined()) return false;
  auto taken = take<arguments>(stack);
  at::Tensor written_mean = mean, written_variance = variance;
  const at::Tensor input = taken[0].toTensor();
  auto [output, saved_mean, saved_deviation] =
      at::_native_batch_norm_legit(input, taken[1].template to<std::optional<at::Tensor>>(), taken[2].template to<std::optional<at::Tensor>>(), written_mean,
                                   written_variance, true, taken[6].toDouble(), taken[7].toDouble());
  torch::jit::push(stack, output, saved_mean, saved_deviation);
  if (reserve != 0) torch::jit::push(stack, at::empty({0}, input.options().dtype(at::kByte)));
  return true;
}

bool attention_with_dense_mask(Stack& stack) {
  constexpr size_t count = 8;
  const at::Tensor& query = torch::jit::peek(stack, 0, count).toTensor();
  c10::IValue& mask = torch::jit::peek(stack, 3, count);
  if (!query.is_floating_point() || !mask.isTensor() || !mask.toTensor().defined()) return false;
  const at::Tensor& tensor = mask.toTensor();
  const bool is_dense = tensor.dim() == 0 || TORCH_GUARD_OR_FALSE(tensor.sym_stride(-1).sym_eq(1));
  if (model::wants_dense_copy({query.is_cuda(), from_torch(query.scalar_type()), is_dense, tensor.requires_grad()})) mask = tensor.contiguous();
  return false;
}

}  // namespace

Composite find_composite(std::string_view op) {
  static constexpr auto composites = std::to_array<std::pair<std::string_view, Composite>>({
      {"aten::_assert_tensor_metadata", assert_tensor_metadata},
      {"aten::_convolution", convolution<13>},
      {"aten::_convolution.deprecated", convolution<12>},
      {"aten::_native_multi_head_attention", multi_head_attention},
      {"aten::cudnn_batch_norm", [](Stack& stack) { return batch_norm_that_writes<8>(stack, 1); }},
      {"aten::detach_", [](Stack&) { return true; }},
      {"aten::matmul", matmul},
      {"aten::native_batch_norm", [](Stack& stack) { return batch_norm_that_writes<8>(stack, 0); }},
      {"aten::one_hot", one_hot},
      {"aten::resize_", resize},
      {"aten::scaled_dot_product_attention", attention_with_dense_mask},
  });
  const auto found = std::find_if(composites.begin(), composites.end(), [&](const auto& row) { return row.first == op; });
  return found == composites.end() ? find_in_place_view<become>(op) : found->second;
}

}  // namespace cxxinductor::torch_bridge
