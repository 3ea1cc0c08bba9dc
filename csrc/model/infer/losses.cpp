// Losses and their gradients.
#include "model/infer/pointwise.h"

namespace cxxinductor::model {
namespace {

constexpr int64_t no_reduction = 0;  // at::Reduction::None

// Of elements of both operands, reduced to one number but where it is asked for all.
InferredResults infer_pointwise_loss(InferContext& c) {
  PointwiseOperands operands;
  operands.add(c.tensor("self"));
  operands.add(c.tensor("target"));
  auto results = infer_pointwise(c, operands, ResultType::Common);
  if (results && c.integer("reduction") != no_reduction) results->front() = contiguous_like(results->front(), {});
  return results;
}

InferredResults infer_cross_entropy_of_logits(InferContext& c) {
  PointwiseOperands operands;
  for (const char* name : {"self", "target", "weight", "pos_weight"})
    if (const CallValueInfo* info = c.optional_tensor(name)) operands.add(*info);
  auto results = infer_pointwise(c, operands, ResultType::Common);
  if (results && c.integer("reduction") != no_reduction) results->front() = contiguous_like(results->front(), {});
  return results;
}

InferredResults infer_binary_cross_entropy(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  if (c.integer("reduction") != no_reduction) return std::vector{contiguous_like(self, {})};
  return std::vector{empty_like(self, MemoryFormat::Preserve, c.sizes)};
}

Rule pointwise_gradient(std::initializer_list<const char*> names) {
  const std::vector<const char*> operands(names);
  return [operands](InferContext& c) -> InferredResults {
    PointwiseOperands found;
    for (const char* name : operands) found.add(c.tensor(name));
    return infer_pointwise(c, found, ResultType::Common);
  };
}

// The loss and the sum of weights.
InferredResults infer_nll_loss(InferContext& c) {
  const CallValueInfo &self = c.tensor("self"), &target = c.tensor("target");
  const bool reduces = c.integer("reduction") != no_reduction || self.sizes.size() == 1;
  if (self.sizes.empty()) c.reject("expected a tensor with dimensions");
  if (target.dtype != DType::I64 && target.dtype != DType::U8) c.reject("expected a target of i64 or u8, found {}", to_string(target.dtype));
  return std::vector{contiguous_like(self, reduces ? Exprs{} : target.sizes), contiguous_like(self, {})};
}

// Of classes, one target (or a set of them) for each row.
InferredResults infer_margin_loss(InferContext& c) {
  const CallValueInfo &self = c.tensor("self"), &target = c.tensor("target");
  const bool reduces = c.integer("reduction") != no_reduction || self.sizes.size() < 2;
  const CallValueInfo loss = contiguous_like(self, reduces ? Exprs{} : Exprs{self.sizes[0]});
  if (c.schema().returns.size() == 1) return std::vector{loss};
  return std::vector{loss, contiguous_like(self, target.sizes)};
}

// The loss of each sequence, and logarithms for the gradient: for each time, of all targets with blanks between.
InferredResults infer_ctc_loss(InferContext& c) {
  const CallValueInfo& logarithms = c.tensor("log_probs");
  c.require_rank(logarithms, 3, "log_probs");
  const sym::Expr times = logarithms.sizes[0], batch = logarithms.sizes[1];
  sym::Expr longest = 0;
  for (sym::Expr length : c.exprs("target_lengths")) longest = c.simplify(sym::max(longest, length));
  return std::vector{contiguous_like(logarithms, {batch}), contiguous_like(logarithms, {batch, times, longest * 2 + 1})};
}

}  // namespace

void add_loss_rules(RuleTable& table) {
  add_rules(table, {"aten::mse_loss", "aten::smooth_l1_loss", "aten::huber_loss", "aten::soft_margin_loss"}, infer_pointwise_loss);
  add_rules(table, {"aten::mse_loss_backward", "aten::smooth_l1_loss_backward", "aten::huber_loss_backward"},
            pointwise_gradient({"self", "target", "grad_output"}));
  add_rules(table, {"aten::soft_margin_loss_backward"}, pointwise_gradient({"self", "target", "grad_output"}));
  add_rules(table, {"aten::binary_cross_entropy_with_logits"}, infer_cross_entropy_of_logits);
  add_rules(table, {"aten::binary_cross_entropy"}, infer_binary_cross_entropy);
  add_rules(table, {"aten::binary_cross_entropy_backward"}, formatted_as("self"));
  add_rules(table, {"aten::nll_loss_forward", "aten::nll_loss2d_forward"}, infer_nll_loss);
  add_rules(table, {"aten::multi_margin_loss", "aten::multilabel_margin_loss_forward"}, infer_margin_loss);
  add_rules(table, {"aten::multi_margin_loss_backward", "aten::multilabel_margin_loss_backward"}, contiguous_as("self"));
  add_rules(table, {"aten::_ctc_loss"}, infer_ctc_loss);
  add_rules(table, {"aten::_ctc_loss_backward", "aten::_ctc_loss_backward.Tensor"}, contiguous_as("log_probs"));
  add_rules(table, {"aten::nll_loss_backward", "aten::nll_loss2d_backward"}, contiguous_as("self"));
}

}  // namespace cxxinductor::model
