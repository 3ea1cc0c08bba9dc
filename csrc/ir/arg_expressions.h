// The symbolic integers that arguments of calls hold; beside for_each_operand_ref of call_args.h.
#pragma once

#include "ir/call_args.h"

namespace cxxinductor {

// Calls visit with each expression of the tree, in order.
template <class Visit>
void for_each_expression(const Arg& arg, const Visit& visit) {
  if (const auto* e = arg.as<sym::Expr>()) visit(*e);
  if (const auto* list = arg.as<ArgList>())
    for (const Arg& item : *list) for_each_expression(item, visit);
}
// Of what has positional and keyword arguments: an extern of any IR, a recorded call.
template <class Callee, class Visit>
requires requires(const Callee& callee) { callee.args, callee.kwargs; }
void for_each_expression(const Callee& callee, const Visit& visit) {
  for (const Arg& arg : callee.args) for_each_expression(arg, visit);
  for (const auto& [name, arg] : callee.kwargs) for_each_expression(arg, visit);
}

}  // namespace cxxinductor
