// Normalizations and their gradients. Statistics are f32 where narrow inputs have f32 parameters, and in some of eager's kernels always.
#include <algorithm>
#include <initializer_list>

#include "ir/device_types.h"
#include "model/infer/table.h"

namespace cxxinductor::model {
namespace {

bool is_narrow(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

// Of parameters, and of statistics that are like them.
DType parameter_dtype(const InferContext& c, const CallValueInfo& input, std::initializer_list<const char*> parameters) {
  if (!is_narrow(input.dtype)) return input.dtype;
  for (const char* name : parameters)
    if (const CallValueInfo* info = c.optional_tensor(name); info != nullptr && info->dtype == DType::F32) return DType::F32;
  return input.dtype;
}

DType statistics_dtype(const InferContext& c, const CallValueInfo& input, std::initializer_list<const char*> parameters) {
  return eager(input.device).statistics_like_parameters ? parameter_dtype(c, input, parameters) : compute_type(input.dtype);
}

InferredResults infer_layer_norm(InferContext& c) {
  const CallValueInfo& input = c.tensor("input");
  const Exprs normalized = c.exprs("normalized_shape");
  if (normalized.empty() || normalized.size() > input.sizes.size())
    c.reject("expected 1 to {} normalized dimensions, found {}", input.sizes.size(), normalized.size());
  const size_t outer = input.sizes.size() - normalized.size();
  for (size_t d = 0; d < normalized.size(); ++d) c.require_equal(normalized[d], input.sizes[outer + d], "normalized size");
  Exprs sizes = input.sizes;
  std::fill(sizes.begin() + static_cast<std::ptrdiff_t>(outer), sizes.end(), sym::Expr(1));
  const CallValueInfo statistics = contiguous(statistics_dtype(c, input, {"weight", "bias"}), input.device, sizes);
  return std::vector{contiguous_like(input, input.sizes), statistics, statistics};
}

InferredResults infer_layer_norm_backward(InferContext& c) {
  const CallValueInfo& input = c.tensor("input");
  const std::vector<bool> mask = c.booleans("output_mask");
  const auto parameter = [&](size_t position) {
    const CallValueInfo* weight = c.optional_tensor("weight");
    if (!mask[position]) return absent();
    if (weight == nullptr) return contiguous_like(input, c.exprs("normalized_shape"));
    return empty_like(*weight, MemoryFormat::Preserve, c.sizes);
  };
  return std::vector{mask[0] ? contiguous_like(input, input.sizes) : absent(), parameter(1), parameter(2)};
}

InferredResults infer_rms_norm(InferContext& c) {
  const CallValueInfo& input = c.tensor("input");
  const size_t normalized = c.exprs("normalized_shape").size();
  if (normalized == 0 || normalized > input.sizes.size()) c.reject("expected 1 to {} normalized dimensions, found {}", input.sizes.size(), normalized);
  Exprs sizes = input.sizes;
  std::fill(sizes.end() - static_cast<std::ptrdiff_t>(normalized), sizes.end(), sym::Expr(1));
  return std::vector{contiguous_like(input, input.sizes), contiguous(compute_type(input.dtype), input.device, sizes)};
}

// The weight in norms along all dimensions but one, and those norms.
InferredResults infer_weight_norm(InferContext& c) {
  const CallValueInfo &weight = c.tensor("v"), &magnitude = c.tensor("g");
  CallValueInfo norms = contiguous_like(magnitude, magnitude.sizes);
  if (is_narrow(magnitude.dtype) && eager(weight.device).weight_norms_in_f32) norms.dtype = DType::F32;
  return std::vector{contiguous_like(weight, weight.sizes), norms};
}

MemoryFormat group_norm_format(const InferContext& c, const CallValueInfo& input) {
  return eager(input.device).group_norm_channels_last ? suggested_format(input, c.sizes) : MemoryFormat::Contiguous;
}

InferredResults infer_group_norm(InferContext& c) {
  const CallValueInfo& input = c.tensor("input");
  const CallValueInfo statistics = contiguous(parameter_dtype(c, input, {"weight", "bias"}), input.device, {c.expr("N"), c.expr("group")});
  return std::vector{empty_like(input, group_norm_format(c, input), c.sizes), statistics, statistics};
}

InferredResults infer_group_norm_backward(InferContext& c) {
  const CallValueInfo& input = c.tensor("input");
  const std::vector<bool> mask = c.booleans("output_mask");
  const CallValueInfo* weight = c.optional_tensor("weight");
  const CallValueInfo parameter = contiguous_like(weight != nullptr ? *weight : input, {c.expr("C")});
  return std::vector{mask[0] ? empty_like(input, group_norm_format(c, input), c.sizes) : absent(), mask[1] ? parameter : absent(),
                     mask[2] ? parameter : absent()};
}

CallValueInfo batch_norm_result(const InferContext& c, const CallValueInfo& input) {
  // ATen's own; those of cuDNN are ops of their own.
  if (eager(input.device).batch_norm_keeps_strides) return empty_like(input, MemoryFormat::Preserve, c.sizes);
  const bool is_dense = is_contiguous(input, c.sizes);
  return empty_like(input, is_dense ? MemoryFormat::Contiguous : suggested_format(input, c.sizes), c.sizes);
}

// training: as the argument says where there is none.
Rule batch_norm(std::optional<bool> training) {
  return [training](InferContext& c) -> InferredResults {
    const CallValueInfo& input = c.tensor("input");
    if (input.sizes.size() < 2) c.reject("expected at least 2 dimensions, found {}", input.sizes.size());
    const bool saves = eager(input.device).batch_norm_always_saves || (training ? *training : c.boolean("training"));
    const DType dtype = statistics_dtype(c, input, {"weight", "bias", "running_mean", "running_var"});
    const CallValueInfo statistics = contiguous(dtype, input.device, {saves ? input.sizes[1] : sym::Expr(0)});
    return std::vector{batch_norm_result(c, input), statistics, statistics};
  };
}

// With the bytes that a library saves for the gradient, whose number no rule knows where there are any.
Rule with_reserve(bool training) {
  return [training](InferContext& c) -> InferredResults {
    InferredResults results = batch_norm(training)(c);
    const Device device = results->front().device;
    if (eager(device).batch_norm_reserves) return std::nullopt;
    results->push_back(contiguous(DType::U8, device, {0}));
    return results;
  };
}

// cuDNN's, which saves nothing in evaluation.
InferredResults infer_cudnn_batch_norm(InferContext& c) {
  if (c.boolean("training")) return std::nullopt;
  const CallValueInfo &input = c.tensor("input"), &weight = c.tensor("weight");
  const CallValueInfo nothing = contiguous_like(weight, {0});
  return std::vector{empty_like(input, suggested_format(input, c.sizes), c.sizes), nothing, nothing, contiguous(DType::U8, input.device, {0})};
}

InferredResults infer_cudnn_batch_norm_backward(InferContext& c) {
  const CallValueInfo &input = c.tensor("input"), &weight = c.tensor("weight");
  const CallValueInfo parameter = empty_like(weight, MemoryFormat::Preserve, c.sizes);
  return std::vector{empty_like(input, suggested_format(input, c.sizes), c.sizes), parameter, parameter};
}

InferredResults infer_batch_norm_backward(InferContext& c) {
  const CallValueInfo& input = c.tensor("input");
  const std::vector<bool> mask = c.booleans("output_mask");
  const CallValueInfo* weight = c.optional_tensor("weight");
  const DType dtype = weight != nullptr ? weight->dtype : statistics_dtype(c, input, {"running_mean", "running_var", "save_mean"});
  const CallValueInfo result =
      eager(input.device).batch_norm_keeps_strides ? empty_like(input, suggested_format(input, c.sizes), c.sizes) : batch_norm_result(c, input);
  const CallValueInfo parameter = contiguous(dtype, input.device, {input.sizes[1]});
  return std::vector{mask[0] ? result : absent(), mask[1] ? parameter : absent(), mask[2] ? parameter : absent()};
}

}  // namespace

void add_norm_rules(RuleTable& table) {
  add_rules(table, {"aten::native_layer_norm"}, infer_layer_norm);
  add_rules(table, {"aten::native_layer_norm_backward"}, infer_layer_norm_backward);
  add_rules(table, {"aten::_fused_rms_norm"}, infer_rms_norm);
  add_rules(table, {"aten::_weight_norm_interface"}, infer_weight_norm);
  add_rules(table, {"aten::native_group_norm"}, infer_group_norm);
  add_rules(table, {"aten::native_group_norm_backward"}, infer_group_norm_backward);
  add_rules(table, {"aten::native_batch_norm", "aten::_native_batch_norm_legit", "aten::_native_batch_norm_legit.no_stats"}, batch_norm(std::nullopt));
  add_rules(table, {"aten::_native_batch_norm_legit_no_training"}, batch_norm(false));
  add_rules(table, {"aten::native_batch_norm_backward", "aten::batch_norm_backward"}, infer_batch_norm_backward);
  add_rules(table, {"aten::cudnn_batch_norm"}, infer_cudnn_batch_norm);
  add_rules(table, {"aten::cudnn_batch_norm_backward"}, infer_cudnn_batch_norm_backward);
  add_rules(table, {"aten::_batch_norm_with_update"}, with_reserve(true));
  add_rules(table, {"aten::_batch_norm_no_update"}, with_reserve(false));
}

}  // namespace cxxinductor::model
