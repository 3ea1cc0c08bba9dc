// Sorts and selections in order: values and positions.
#include "model/infer/table.h"

namespace cxxinductor::model {
namespace {

InferredResults with_positions(CallValueInfo values) {
  CallValueInfo positions = values;
  positions.dtype = DType::I64;
  return std::vector{std::move(values), std::move(positions)};
}

InferredResults infer_sort(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  c.dim("dim", self.sizes.size());
  return with_positions(empty_like(self, MemoryFormat::Preserve, c.sizes));
}

InferredResults infer_topk(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  Exprs sizes = self.sizes;
  const auto dim = static_cast<size_t>(c.dim("dim", sizes.size()));
  const sym::Expr count = c.expr("k");
  if (!sizes.empty()) {
    if (c.sizes.is_less(sizes[dim], count)) c.reject("expected at most {} elements, found {}", sym::to_string(sizes[dim]), sym::to_string(count));
    sizes[dim] = count;
  }
  return with_positions(contiguous_like(self, sizes));
}

}  // namespace

void add_sort_rules(RuleTable& table) {
  add_rules(table, {"aten::sort", "aten::sort.stable"}, infer_sort);
  add_rules(table, {"aten::topk"}, infer_topk);
}

}  // namespace cxxinductor::model
