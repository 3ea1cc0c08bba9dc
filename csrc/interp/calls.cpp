#include "interp/calls.h"

#include <optional>

#include "ir/library_ops.h"

namespace cxxinductor::interp {
namespace {

Arg without_expressions(const Arg& arg, const Symbols& symbols) {
  if (const auto* e = arg.as<sym::Expr>()) return Arg(evaluate(*e, symbols));
  const auto* list = arg.as<ArgList>();
  if (!list) return arg;
  ArgList items;
  for (const Arg& item : *list) items.push_back(without_expressions(item, symbols));
  return Arg(std::move(items));
}

std::optional<std::vector<Tensor>> run_known_call(const Call& call, const std::vector<Tensor>& operands) {
  const bool reads = is_call_of(call, OpFamily::ScalarRead);
  if (!reads && !is_call_of(call, OpFamily::Assertion)) return std::nullopt;
  const OperandRef* ref = find_operand_ref(call, reads ? ArgRole::Input : ArgRole::Condition);
  if (ref == nullptr || ref->operand >= operands.size()) return std::nullopt;
  const Tensor& operand = operands[ref->operand];
  if (reads) return std::vector<Tensor>{integer_tensor(cast(operand.elements.at(0), DType::I64).integer())};
  const Arg* text = find_argument(call, ArgRole::Message);
  const auto* message = text ? text->as<std::string>() : nullptr;
  if (operand.elements.at(0).integer() == 0) throw FailedAssertion(message ? *message : "Assertion is failed");
  return std::vector<Tensor>();
}

}  // namespace

Tensor integer_tensor(int64_t value) { return {DType::I64, {}, {Scalar::from_integer(DType::I64, value)}}; }

void check_argument(const Tensor& argument, std::string_view name, DType dtype, const std::vector<int64_t>& sizes) {
  if (argument.dtype != dtype || argument.sizes != sizes)
    throw_user_error("expected argument {} to be {}[{}], found {}[{}]", name, to_string(dtype), fmt::join(sizes, ", "), to_string(argument.dtype),
                     fmt::join(argument.sizes, ", "));
  if (static_cast<int64_t>(argument.elements.size()) != element_count(sizes))
    throw_user_error("expected {} elements of argument {}, found {}", element_count(sizes), name, argument.elements.size());
  for (const Scalar& element : argument.elements)
    if (element.dtype() != dtype) throw_user_error("expected elements of {} in argument {}, found {}", to_string(dtype), name, to_string(element.dtype()));
}

void define(const std::string& symbol, const sym::Assumptions& assumptions, int64_t value, Symbols& symbols) {
  const sym::Interval range = assumptions.range(symbol);
  if (value < range.low || value > range.high || value % assumptions.divisor(symbol) != 0)
    throw FailedAssertion(fmt::format("{} is {}, outside of what is known of it", symbol, value));
  symbols[symbol] = value;
}

void define(const std::vector<Definition>& definitions, const sym::Assumptions& assumptions, const std::vector<Tensor>& results, Symbols& symbols) {
  for (const Definition& definition : definitions) {
    const Tensor& result = results.at(definition.result < 0 ? 0 : static_cast<size_t>(definition.result));
    const auto dim = static_cast<size_t>(definition.dim);
    if (definition.result < 0) {
      define(definition.symbol, assumptions, result.elements.at(0).integer(), symbols);
    } else if (dim < result.sizes.size()) {
      define(definition.symbol, assumptions, result.sizes[dim], symbols);
    } else {
      throw_unsupported("the interpreter's tensors have no strides, which {} is one of", definition.symbol);
    }
  }
}

std::vector<Tensor> call_extern(const ExternHandler& externs, const Call& call, const std::vector<Tensor>& operands, const Symbols& symbols, size_t results) {
  if (auto known = run_known_call(call, operands)) return std::move(*known);
  if (!externs) throw_unsupported("the interpreter was given no meaning of {}.{}", call.callee, call.overload);
  std::vector<Arg> plain;
  for (const Arg& arg : call.args) plain.push_back(without_expressions(arg, symbols));
  std::vector<Tensor> found = externs(call.callee, call.overload, plain, operands);
  const size_t mutated = call.mutated_operands.size();
  if (found.size() != results + mutated)
    throw_user_error("expected {} results and {} mutated operands of {}.{}, found {} tensors", results, mutated, call.callee, call.overload, found.size());
  return found;
}

}  // namespace cxxinductor::interp
