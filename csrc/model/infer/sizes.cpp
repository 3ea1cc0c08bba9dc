// Sizes and strides of tensors as results.
#include "model/infer/table.h"

namespace cxxinductor::model {
namespace {

InferredResults one_result(sym::Expr e) { return std::vector{size_value(e)}; }

InferredResults in_dimension(const InferContext& c, const Exprs& values) {
  if (values.empty()) c.reject("expected a tensor with dimensions");
  return one_result(values[static_cast<size_t>(c.dim("dim", values.size()))]);
}

}  // namespace

void add_size_rules(RuleTable& table) {
  add_rules(table, {"aten::sym_size.int"}, [](InferContext& c) { return in_dimension(c, c.tensor("self").sizes); });
  add_rules(table, {"aten::sym_stride.int"}, [](InferContext& c) { return in_dimension(c, c.tensor("self").strides); });
  add_rules(table, {"aten::sym_numel"}, [](InferContext& c) { return one_result(sym::product(c.tensor("self").sizes)); });
  add_rules(table, {"aten::sym_storage_offset"}, [](InferContext& c) { return one_result(c.tensor("self").storage_offset); });
}

}  // namespace cxxinductor::model
