// Attention of [batch, heads, length, channels] in one call.
#include "model/infer/table.h"

namespace cxxinductor::model {
namespace {

void require_attention(const InferContext& c) {
  for (const char* name : {"query", "key", "value"}) c.require_rank(c.tensor(name), 4, name);
}

// [batch, heads, length, channels], in memory by length before heads.
CallValueInfo by_length(const CallValueInfo& like, const Exprs& sizes) {
  CallValueInfo info = contiguous_like(like, {sizes[0], sizes[2], sizes[1], sizes[3]});
  std::swap(info.sizes[1], info.sizes[2]);
  std::swap(info.strides[1], info.strides[2]);
  return info;
}

InferredResults infer_cpu(InferContext& c) {
  require_attention(c);
  const CallValueInfo& query = c.tensor("query");
  CallValueInfo sums = by_length(query, {query.sizes[0], query.sizes[1], query.sizes[2], 1});
  sums.dtype = compute_type(query.dtype);
  sums.sizes.pop_back();
  sums.strides.pop_back();
  return std::vector{empty_like(query, MemoryFormat::Preserve, c.sizes), sums};
}

InferredResults infer_gradients_by_length(InferContext& c) {
  require_attention(c);
  std::vector<CallValueInfo> results;
  for (const char* name : {"query", "key", "value"}) results.push_back(by_length(c.tensor(name), c.tensor(name).sizes));
  return results;
}

// Output, sums, lengths of packed sequences, longest lengths, the generator's state, and a mask for debugging.
InferredResults infer_flash(InferContext& c) {
  require_attention(c);
  if (c.boolean("return_debug_mask")) return std::nullopt;
  const CallValueInfo &query = c.tensor("query"), &key = c.tensor("key");
  const Exprs& sizes = query.sizes;
  return std::vector{empty_like(query, MemoryFormat::Preserve, c.sizes),
                     contiguous(DType::F32, query.device, {sizes[0], sizes[1], sizes[2]}),
                     absent(),
                     absent(),
                     size_value(sizes[2]),
                     size_value(key.sizes[2]),
                     contiguous(DType::U64, query.device, {2}),
                     contiguous(DType::U64, query.device, {}),
                     contiguous(query.dtype, query.device, {0})};
}

// By cuDNN: with the query's order of dimensions.
InferredResults infer_cudnn(InferContext& c) {
  require_attention(c);
  const CallValueInfo &query = c.tensor("query"), &key = c.tensor("key"), &value = c.tensor("value");
  const Exprs& sizes = query.sizes;
  const Exprs output{sizes[0], sizes[1], sizes[2], value.sizes[3]};
  return std::vector{new_tensor(query.dtype, query.device, output, strides_in_order_of(output, {{query.strides}}, c.sizes)),
                     contiguous(DType::F32, query.device, {sizes[0], sizes[1], sizes[2], 1}),
                     absent(),
                     absent(),
                     size_value(sizes[2]),
                     size_value(key.sizes[2]),
                     contiguous(DType::I64, query.device, {}),
                     contiguous(DType::I64, query.device, {}),
                     absent()};
}

InferredResults infer_gradients(InferContext& c) {
  require_attention(c);
  std::vector<CallValueInfo> results;
  for (const char* name : {"query", "key", "value"}) results.push_back(empty_like(c.tensor(name), MemoryFormat::Preserve, c.sizes));
  return results;
}

// Also that of the bias, in rows of a multiple of 16 elements.
InferredResults infer_efficient_backward(InferContext& c) {
  InferredResults results = infer_gradients_by_length(c);
  const CallValueInfo* bias = c.optional_tensor("attn_bias");
  const std::vector<bool> mask = c.booleans("grad_input_mask");
  if (bias == nullptr || mask.size() != 4 || !mask[3]) {
    results->push_back(absent());
    return results;
  }
  Exprs rows = bias->sizes;
  rows.back() = c.simplify(sym::ceil_div(rows.back(), 16) * 16);
  results->push_back(contiguous_like(*bias, std::move(rows)));
  results->back().sizes = bias->sizes;
  return results;
}

InferredResults infer_efficient(InferContext& c) {
  require_attention(c);
  const CallValueInfo &query = c.tensor("query"), &value = c.tensor("value");
  const Exprs& sizes = query.sizes;
  const Arg* dropout = c.find("dropout_p");
  // Sums are padded to whole warps. The state is a number of the CPU where it was drawn from the generator.
  const sym::Expr padded = c.boolean("compute_log_sumexp") ? c.simplify(sym::ceil_div(sizes[2], 32) * 32) : sym::Expr(0);
  const Device state = dropout != nullptr && c.real(*dropout) > 0 ? Device{} : query.device;
  return std::vector{by_length(query, {sizes[0], sizes[1], sizes[2], value.sizes[3]}), contiguous(DType::F32, query.device, {sizes[0], sizes[1], padded}),
                     contiguous(DType::I64, state, {}), contiguous(DType::I64, state, {})};
}

}  // namespace

void add_attention_rules(RuleTable& table) {
  add_rules(table, {"aten::_scaled_dot_product_flash_attention_for_cpu"}, infer_cpu);
  add_rules(table, {"aten::_scaled_dot_product_flash_attention_for_cpu_backward"}, infer_gradients_by_length);
  add_rules(table, {"aten::_scaled_dot_product_flash_attention"}, infer_flash);
  add_rules(table, {"aten::_scaled_dot_product_efficient_attention"}, infer_efficient);
  add_rules(table, {"aten::_scaled_dot_product_efficient_attention_backward"}, infer_efficient_backward);
  add_rules(table, {"aten::_scaled_dot_product_cudnn_attention"}, infer_cudnn);
  add_rules(table, {"aten::_scaled_dot_product_flash_attention_backward", "aten::_scaled_dot_product_cudnn_attention_backward"}, infer_gradients);
}

}  // namespace cxxinductor::model
