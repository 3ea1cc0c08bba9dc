#include "torch_bridge/convolve_in_place.h"

#include <ATen/Context.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/utils/ParamUtils.h>
#include <ATen/ops/_conv_depthwise2d.h>
#include <ATen/ops/cudnn_convolution.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace cxxinductor::torch_bridge {
namespace {

using at::native::ConvBackend;

// What cuDNN's choice among its algorithms depends on at most: eager's results begin at multiples of 512.
constexpr uintptr_t alignment = 32;

// convolution.out(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, out)
struct Convolution {
  at::Tensor input, weight;
  std::optional<at::Tensor> bias;
  std::vector<int64_t> stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
  at::Tensor out;
};

Convolution read_arguments(const torch::jit::Stack& arguments) {
  const auto numbers = [&](size_t i) { return arguments[i].toIntVector(); };
  return {arguments[0].toTensor(),
          arguments[1].toTensor(),
          arguments[2].toOptional<at::Tensor>(),
          numbers(3),
          numbers(4),
          numbers(5),
          numbers(7),
          arguments[6].toBool(),
          arguments[8].toInt(),
          arguments[9].toTensor()};
}

ConvBackend backend_of(const Convolution& c) {
  const auto numbers = [](const std::vector<int64_t>& values) { return c10::fromIntArrayRefSlow(values); };
  return at::native::select_conv_backend(c.input, c.weight, c.bias, numbers(c.stride), numbers(c.padding), numbers(c.dilation), c.transposed,
                                         numbers(c.output_padding), c.groups, std::nullopt);
}

// Backends compute one dimension as two.
void add_height(Convolution& c) {
  c.input = c.input.contiguous().unsqueeze(2);
  c.weight = c.weight.unsqueeze(2);
  c.stride.insert(c.stride.begin(), 1);
  c.padding.insert(c.padding.begin(), 0);
  c.dilation.insert(c.dilation.begin(), 1);
}

c10::DimVector strides_in(at::MemoryFormat format, c10::IntArrayRef sizes) {
  if (format == at::MemoryFormat::ChannelsLast) return c10::DimVector(c10::get_channels_last_strides_2d(sizes));
  if (format == at::MemoryFormat::ChannelsLast3d) return c10::DimVector(c10::get_channels_last_strides_3d(sizes));
  return c10::contiguous_strides(sizes);
}

// The destination in the very strides of the tensor that eager allocates, from which backends read a format: those of
// dimensions of size 1 too, which a plan does not care for. Nothing if the plan has its elements in another order, or
// if it is no result of this call.
std::optional<at::Tensor> destination(const Convolution& c, at::MemoryFormat format) {
  const std::vector<int64_t> sizes = at::native::conv_output_size(c.input.sizes(), c.weight.sizes(), c.padding, c.stride, c.dilation);
  const c10::DimVector wanted = strides_in(format, sizes);
  const bool has_height = c.out.dim() + 1 == c.input.dim();  // not in `out`
  if (!has_height && c.out.dim() != c.input.dim()) return std::nullopt;
  bool exact = !has_height;
  for (int64_t d = 0; d < c.out.dim(); ++d) {
    const auto i = static_cast<size_t>(has_height && d >= 2 ? d + 1 : d);
    if (c.out.size(d) != sizes[i]) return std::nullopt;
    const bool same = c.out.stride(d) == wanted[i];
    if (!same && sizes[i] != 1) return std::nullopt;
    exact &= same;
  }
  if (c.out.numel() == 0 || reinterpret_cast<uintptr_t>(c.out.const_data_ptr()) % alignment != 0) return std::nullopt;
  return exact ? c.out : c.out.as_strided(sizes, wanted);
}

bool call_cudnn(const Convolution& c) {
  if (!c.input.options().type_equal(c.weight.options()) || (c.bias && !c.input.options().type_equal(c.bias->options()))) return false;
  const at::MemoryFormat format = at::native::cudnn_conv_suggest_memory_format(c.input, c.weight);
  std::optional<at::Tensor> out = destination(c, format);
  if (!out) return false;
  const at::Context& settings = at::globalContext();
  const bool deterministic = settings.deterministicCuDNN() || settings.deterministicAlgorithms();
  at::cudnn_convolution_outf(c.input.contiguous(format), c.weight, c.padding, c.stride, c.dilation, c.groups, settings.benchmarkCuDNN(), deterministic,
                             settings.allowTF32CuDNN(at::Float32Op::CONV), *out);
  if (c.bias) out->add_(at::native::reshape_bias(c.input.dim(), *c.bias));
  return true;
}

bool call_depthwise(const Convolution& c) {
  std::optional<at::Tensor> out = destination(c, at::MemoryFormat::Contiguous);
  if (!out) return false;
  at::_conv_depthwise2d_outf(c.input.contiguous(), c.weight, c.weight.sizes().slice(2), c.bias, c.stride, c.padding, c.dilation, *out);
  return true;
}

}  // namespace

bool convolve_in_place(const torch::jit::Stack& arguments) {
  Convolution c = read_arguments(arguments);
  if (c.transposed || !c.input.is_cuda()) return false;
  const int64_t dims = c.weight.dim() - 2;
  if (dims < 1 || c.out.scalar_type() != c.input.scalar_type() || c.out.device() != c.input.device()) return false;
  const ConvBackend backend = backend_of(c);
  if (backend != ConvBackend::Cudnn && backend != ConvBackend::CudaDepthwise2d) return false;
  c.stride = at::native::expand_param_if_needed(c.stride, "stride", dims);
  c.padding = at::native::expand_param_if_needed(c.padding, "padding", dims);
  c.dilation = at::native::expand_param_if_needed(c.dilation, "dilation", dims);
  if (dims == 1) add_height(c);
  return backend == ConvBackend::Cudnn ? call_cudnn(c) : call_depthwise(c);
}

}  // namespace cxxinductor::torch_bridge
