// What holds of an extern call in every IR: operand references, keywords, alias and mutation facts are in range.
#pragma once

#include <set>
#include <string>

#include <fmt/format.h>

#include "ir/call_args.h"
#include "ir/text_parts.h"

namespace cxxinductor {

// Callee: what has args, kwargs, alias_of and mutated_operands. is_tensor(i): operand i is a tensor. report(text): says what
// is wrong; report_name(text): the same of names that do not print.
template <class Callee, class IsTensor, class Report, class ReportName>
void verify_call(const Callee& callee, size_t operands, size_t results, const IsTensor& is_tensor, const Report& report,
                 const ReportName& report_name) {
  if (callee.callee.empty()) report(std::string("calls nothing"));
  for_each_operand_ref(callee, [&](const OperandRef& ref) {
    if (ref.operand >= operands) report(fmt::format("has the argument ${} and {} operands", ref.operand, operands));
  });
  for (const auto& [key, arg] : callee.kwargs)
    if (!is_symbol_name(key)) report_name(fmt::format("has the keyword '{}'", key));
  if (callee.alias_of.size() != results)
    report(fmt::format("has {} results and {} alias annotations", results, callee.alias_of.size()));
  for (int operand : callee.alias_of)
    if (operand != -1 && (operand < 0 || !is_tensor(static_cast<size_t>(operand))))
      report(fmt::format("has a result that aliases operand {}, which is not a tensor", operand));
  std::set<uint32_t> mutated;
  for (uint32_t operand : callee.mutated_operands)
    if (!is_tensor(operand) || !mutated.insert(operand).second)
      report(fmt::format("mutates operand {}, which is not a tensor or named twice", operand));
}

}  // namespace cxxinductor
