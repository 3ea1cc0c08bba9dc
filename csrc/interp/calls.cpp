#include "interp/calls.h"


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

}  // namespace

Tensor integer_tensor(int64_t value) { return {DType::I64, {}, {Scalar::from_integer(DType::I64, value)}}; }

void check_argument(const Tensor& argument, std::string_view name, DType dtype, const std::vector<int64_t>& sizes) {
  if (argument.dtype != dtype || argument.sizes != sizes)
    throw_user_error("expected argument {} to be {}[{}], found {}[{}]", name, to_string(dtype), fmt::join(sizes, ", "),
                     to_string(argument.dtype), fmt::join(argument.sizes, ", "));
  if (static_cast<int64_t>(argument.elements.size()) != element_count(sizes))
    throw_user_error("expected {} elements of argument {}, found {}", element_count(sizes), name, argument.elements.size());
  for (const Scalar& element : argument.elements)
    if (element.dtype() != dtype)
      throw_user_error("expected elements of {} in argument {}, found {}", to_string(dtype), name, to_string(element.dtype()));
}

std::vector<Tensor> call_extern(const ExternHandler& externs, const std::string& callee, const std::string& overload,
                                const std::vector<Arg>& args, const std::vector<Tensor>& operands, const Symbols& symbols,
                                size_t results, size_t mutated) {
  if (!externs) throw_unsupported("the interpreter was given no meaning of {}.{}", callee, overload);
  std::vector<Arg> plain;
  for (const Arg& arg : args) plain.push_back(without_expressions(arg, symbols));
  std::vector<Tensor> found = externs(callee, overload, plain, operands);
  if (found.size() != results + mutated)
    throw_user_error("expected {} results and {} mutated operands of {}.{}, found {} tensors", results, mutated, callee,
                     overload, found.size());
  return found;
}

}  // namespace cxxinductor::interp
