// Rules of the ops that users register with a standard result (cxxinductor/extend.h).
#include <algorithm>

#include "ir/registered_ops.h"
#include "model/infer/pointwise.h"
#include "support/fork_locks.h"

namespace cxxinductor::model {
namespace {

// All arguments are operands; numbers promote as in the importer (frontend/registered.cpp).
InferredResults infer_scalar_op(InferContext& c) {
  PointwiseOperands operands;
  for (const SchemaArgument& argument : c.schema().arguments) {
    const Arg* arg = c.find(argument);
    if (arg == nullptr) return std::nullopt;
    if (const CallValueInfo* tensor = c.as_tensor(*arg)) {
      operands.add(*tensor);
    } else if (const auto dtype = c.dtype_of_number(*arg)) {
      operands.promoted.push_back({*dtype, OperandKind::Number});
      operands.has_numbers |= argument.is_tensor;
    } else {
      return std::nullopt;
    }
  }
  const ScalarOpInfo& row = info(*find_registered_scalar_op(full_name(c.call())));
  auto results = infer_pointwise(c, operands, row.types == TypeSet::Floating ? ResultType::Float : ResultType::Common);
  const bool computes = results && !is_opaque(results->front().dtype) && accepts(row.types, results->front().dtype);
  return computes ? results : std::nullopt;
}

InferredResults infer_reduction(InferContext& c) {
  const auto& arguments = c.schema().arguments;
  const CallValueInfo& self = c.tensor(arguments.front().name);
  std::vector<int> dims;
  if (arguments.size() > 1 && c.has(arguments[1].name)) dims = c.dims(arguments[1].name, self.sizes.size());
  for (auto dim = dims.begin(); dim != dims.end(); ++dim)
    if (std::find(dims.begin(), dim, *dim) != dim) c.reject("expected each dimension once, found {} twice", *dim);
  const bool keepdim = arguments.size() > 2 && c.boolean(arguments[2].name);
  std::vector<CallValueInfo> results;
  for (const TypedName& result : form(*find_registered_reduction(full_name(c.call()))).results)
    results.push_back(contiguous(result.dtype(self.dtype), self.device, reduced(self.sizes, dims, keepdim)));
  return results;
}

}  // namespace

const Rule* registered_rule(std::string_view full_name) {
  static constinit MadeOnce<Rule, ForkLock::Tables> scalar_op, reduction;
  if (const auto op = find_registered_scalar_op(full_name); op && has_standard_result(*op)) return &scalar_op.get([] { return Rule(infer_scalar_op); });
  if (const auto op = find_registered_reduction(full_name); op && has_standard_result(*op)) return &reduction.get([] { return Rule(infer_reduction); });
  return nullptr;
}

}  // namespace cxxinductor::model
