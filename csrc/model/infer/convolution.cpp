// Convolutions and their gradients. Results have the format of input or weight where either is channels-last, as
// libraries compute them so; ATen's own 3-d kernels and cuDNN's of f64 do not.
#include <algorithm>

#include "ir/device_types.h"
#include "model/infer/table.h"

namespace cxxinductor::model {
namespace {

// One number for all dimensions, or one each.
sym::Expr at(const InferContext& c, const Exprs& values, size_t d) {
  if (values.size() != 1 && d >= values.size()) c.reject("expected a number for dimension {}, found {}", d, print_expr_list(values));
  return values.size() == 1 ? values.front() : values[d];
}

Exprs output_sizes(const InferContext& c, const CallValueInfo& input, const CallValueInfo& weight) {
  const Exprs stride = c.exprs("stride"), padding = c.exprs("padding"), dilation = c.exprs("dilation");
  const Exprs output_padding = c.exprs("output_padding");
  const bool transposed = c.boolean("transposed");
  const sym::Expr groups = c.expr("groups");
  const size_t rank = input.sizes.size();
  if (rank < 3 || weight.sizes.size() != rank) c.reject("expected input and weight of at least 3 dimensions, found {} and {}", rank, weight.sizes.size());
  if (input.dtype != weight.dtype) c.reject("expected a weight of {}, found {}", to_string(input.dtype), to_string(weight.dtype));
  c.require_equal(transposed ? weight.sizes[0] : weight.sizes[1] * groups, input.sizes[1], "channels");
  Exprs sizes{input.sizes[0], transposed ? weight.sizes[1] * groups : weight.sizes[0]};
  for (size_t d = 0; d + 2 < rank; ++d) {
    const sym::Expr reach = at(c, dilation, d) * (weight.sizes[d + 2] - 1), step = at(c, stride, d);
    const sym::Expr padded = at(c, padding, d) * 2;
    if (c.sizes.is_less(step, 1) || c.sizes.is_less(at(c, dilation, d), 1))
      c.reject("expected strides and dilations of at least 1, found {} and {}", print_expr_list(stride), print_expr_list(dilation));
    const sym::Expr size = transposed ? (input.sizes[d + 2] - 1) * step - padded + reach + at(c, output_padding, d) + 1
                                      : sym::floor_div(input.sizes[d + 2] + padded - reach - 1, step) + 1;
    if (c.sizes.is_less(size, 0)) c.reject("expected an input of at least the kernel's size, found {}", print_expr_list(input.sizes));
    sizes.push_back(c.simplify(size));
  }
  return sizes;
}

// With a dimension of size 1 in front of the last: convolutions of one dimension run as those of two.
CallValueInfo with_height(CallValueInfo info) {
  info.strides.insert(info.strides.begin() + 2, info.sizes[2] * info.strides[2]);
  info.sizes.insert(info.sizes.begin() + 2, sym::Expr(1));
  return info;
}

bool takes_library(const InferContext& c, const CallValueInfo& input, const CallValueInfo& weight) {
  if (eager(input.device).convolutions_by_library) return true;
  if (input.dtype != DType::F32) return input.dtype == DType::BF16 || input.dtype == DType::F16;
  const auto at_least = [&](sym::Expr e, int64_t least) { return !c.sizes.is_less(e, least); };
  if (c.boolean("transposed")) {
    for (sym::Expr e : c.exprs("output_padding"))
      for (sym::Expr step : c.exprs("stride"))
        if (!c.sizes.is_less(e, step)) return false;
    if (at_least(c.expr("groups"), 2) && c.is(c.expr("groups"), input.sizes[1])) return false;
  }
  const size_t last = weight.sizes.size() - 1;
  return at_least(c.expr("groups"), 2) || (at_least(weight.sizes[last], 4) && at_least(weight.sizes[last - 1], 4)) || at_least(input.sizes[0], 2) ||
         at_least(sym::product(input.sizes), 20481);
}

MemoryFormat format_of(const InferContext& c, const CallValueInfo& given_input, const CallValueInfo& given_weight) {
  const bool is_1d = given_input.sizes.size() == 3;
  const CallValueInfo input = is_1d ? with_height(contiguous_like(given_input, given_input.sizes)) : given_input;
  const CallValueInfo weight = is_1d ? with_height(given_weight) : given_weight;
  const bool is_3d = input.sizes.size() == 5;
  const bool keeps_f64 = !is_3d && eager(input.device).f64_images_channels_last;
  if (input.dtype == DType::F64 && !keeps_f64) return MemoryFormat::Contiguous;
  if (is_3d && !takes_library(c, input, weight)) return MemoryFormat::Contiguous;
  const MemoryFormat of_input = suggested_format(input, c.sizes);
  return of_input != MemoryFormat::Contiguous ? of_input : suggested_format(weight, c.sizes);
}

CallValueInfo made_in(const CallValueInfo& like, Exprs sizes, MemoryFormat format) {
  const bool is_1d = sizes.size() == 3;
  if (!is_1d || format == MemoryFormat::Contiguous) return in_format(like.dtype, like.device, std::move(sizes), format);
  sizes.insert(sizes.begin() + 2, sym::Expr(1));
  CallValueInfo info = in_format(like.dtype, like.device, std::move(sizes), format);
  info.sizes.erase(info.sizes.begin() + 2);
  info.strides.erase(info.strides.begin() + 2);
  return info;
}

InferredResults infer_convolution(InferContext& c) {
  const CallValueInfo &input = c.tensor("input"), &weight = c.tensor("weight");
  return std::vector{made_in(input, output_sizes(c, input, weight), format_of(c, input, weight))};
}

InferredResults infer_convolution_backward(InferContext& c) {
  const CallValueInfo &grad = c.tensor("grad_output"), &input = c.tensor("input"), &weight = c.tensor("weight");
  const std::vector<bool> mask = c.booleans("output_mask");
  if (mask.size() != 3) c.reject("expected 3 flags in 'output_mask', found {}", mask.size());
  const MemoryFormat format = format_of(c, input, weight);
  return std::vector{mask[0] ? made_in(input, input.sizes, format) : absent(), mask[1] ? made_in(weight, weight.sizes, format) : absent(),
                     mask[2] ? contiguous_like(grad, {grad.sizes[1]}) : absent()};
}

}  // namespace

void add_convolution_rules(RuleTable& table) {
  add_rules(table, {"aten::convolution"}, infer_convolution);
  add_rules(table, {"aten::convolution_backward"}, infer_convolution_backward);
}

}  // namespace cxxinductor::model
