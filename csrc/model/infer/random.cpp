// Random numbers in the sizes of a tensor; those of given sizes are with the other new tensors.
#include "model/infer/table.h"

namespace cxxinductor::model {
namespace {

// The values and the mask of what stays.
InferredResults infer_dropout(InferContext& c) {
  const CallValueInfo& input = c.tensor("input");
  const CallValueInfo values = empty_like(input, MemoryFormat::Preserve, c.sizes);
  CallValueInfo mask = values;
  mask.dtype = DType::Bool;
  return std::vector{values, mask};
}

InferredResults infer_multinomial(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  if (self.sizes.empty() || self.sizes.size() > 2) c.reject("expected 1 or 2 dimensions, found {}", self.sizes.size());
  Exprs sizes = self.sizes;
  sizes.back() = c.expr("num_samples");
  return std::vector{contiguous(DType::I64, self.device, sizes)};
}

InferredResults infer_normal(InferContext& c) {
  const CallValueInfo &mean = c.tensor("mean"), &deviation = c.tensor("std");
  return std::vector{contiguous_like(mean, c.broadcast(mean.sizes, deviation.sizes))};
}

}  // namespace

void add_random_rules(RuleTable& table) {
  add_rules(table, {"aten::bernoulli", "aten::bernoulli.p"}, contiguous_as("self"));
  add_rules(table,
            {"aten::bernoulli.Tensor", "aten::uniform", "aten::normal_functional", "aten::exponential", "aten::random", "aten::random.from", "aten::random.to",
             "aten::geometric", "aten::cauchy", "aten::log_normal"},
            formatted_as("self"));
  add_rules(table, {"aten::native_dropout"}, infer_dropout);
  add_rules(table, {"aten::multinomial"}, infer_multinomial);
  add_rules(table, {"aten::normal.Tensor_Tensor"}, infer_normal);
  add_rules(table, {"aten::normal.Tensor_float"}, contiguous_as("mean"));
  add_rules(table, {"aten::normal.float_Tensor"}, contiguous_as("std"));
}

}  // namespace cxxinductor::model
