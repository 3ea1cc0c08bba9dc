#include "torch_bridge/device/out_variants.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "torch_bridge/device/buffer.h"

namespace cxxinductor::torch_bridge {
namespace {

bool is_written(const c10::Argument& argument) { return argument.alias_info() != nullptr && argument.alias_info()->isWrite(); }

// The arguments of `schema` are the first ones of `all`, and none is written.
bool are_first_of(const c10::FunctionSchema& schema, const std::vector<c10::Argument>& all, size_t count) {
  if (schema.arguments().size() != count) return false;
  for (size_t i = 0; i < count; ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (is_written(argument) || argument.name() != all[i].name() || *argument.type() != *all[i].type()) return false;
  }
  return true;
}

// Writing to it before all of its operands are read changes nothing.
bool is_apart(const at::Tensor& target, const c10::IValue& operand) {
  if (operand.isTensorList() || operand.isOptionalTensorList()) {
    const auto items = operand.toListRef();
    return std::all_of(items.begin(), items.end(), [&](const c10::IValue& item) { return is_apart(target, item); });
  }
  if (!operand.isTensor() || buffer_of(operand.toTensor()) != buffer_of(target)) return true;
  return form_of(operand.toTensor()) == form_of(target);
}

}  // namespace

std::optional<c10::OperatorHandle> functional_form(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const std::vector<c10::Argument>& arguments = schema.arguments();
  const size_t results = schema.returns().size();
  if (results == 0 || results >= arguments.size()) return std::nullopt;
  const size_t count = arguments.size() - results;
  for (size_t i = 0; i < results; ++i)
    if (!is_written(schema.returns()[i]) || !arguments[count + i].kwarg_only() || !is_written(arguments[count + i]) ||
        arguments[count + i].type()->kind() != c10::TypeKind::TensorType)
      return std::nullopt;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name != schema.name() || name.overload_name == schema.overload_name()) continue;
    auto found = c10::Dispatcher::singleton().findSchema(name);
    if (found && found->schema().returns().size() == results && are_first_of(found->schema(), arguments, count)) return found;
  }
  return std::nullopt;
}

bool write_out(const c10::OperatorHandle& op, const c10::OperatorHandle& functional, torch::jit::Stack& stack) {
  const size_t count = functional.schema().arguments().size();
  const auto all = torch::jit::last(stack, op.schema().arguments().size());
  torch::jit::Stack made(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<at::Tensor> targets;
  for (size_t i = count; i < all.size(); ++i) {
    const at::Tensor& target = all[i].toTensor();
    if (buffer_of(target) == nullptr || !target.is_non_overlapping_and_dense() || target.is_conj() || target.is_neg()) return false;
    if (!std::all_of(made.begin(), made.end(), [&](const c10::IValue& one) { return is_apart(target, one); })) return false;
    targets.push_back(target);
  }
  functional.callBoxed(made);
  for (size_t i = 0; i < targets.size(); ++i)
    if (made[i].toTensor().sizes() != targets[i].sizes() || made[i].toTensor().dtype() != targets[i].dtype()) return false;
  torch::jit::drop(stack, all.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    targets[i].copy_(made[i].toTensor());
    stack.emplace_back(targets[i]);
  }
  return true;
}

}  // namespace cxxinductor::torch_bridge
