#include "ir/verify_call.h"

#include <fmt/format.h>

#include <set>

#include "ir/text_parts.h"

namespace cxxinductor {

void verify_call(const Call& call, size_t operands, size_t results, const std::function<bool(size_t)>& is_tensor, const ReportCall& report,
                 const ReportCall& report_name) {
  if (call.callee.empty()) report("calls nothing");
  for_each_operand_ref(call, [&](const OperandRef& ref) {
    if (ref.operand >= operands) report(fmt::format("has the argument ${} and {} operands", ref.operand, operands));
  });
  for (const auto& [key, arg] : call.kwargs)
    if (!is_symbol_name(key)) report_name(fmt::format("has the keyword '{}'", key));
  if (call.alias_of.size() != results) report(fmt::format("has {} results and {} alias annotations", results, call.alias_of.size()));
  for (int operand : call.alias_of)
    if (operand != -1 && (operand < 0 || !is_tensor(static_cast<size_t>(operand))))
      report(fmt::format("has a result that aliases operand {}, which is not a tensor", operand));
  std::set<uint32_t> mutated;
  for (uint32_t operand : call.mutated_operands)
    if (!is_tensor(operand) || !mutated.insert(operand).second) report(fmt::format("mutates operand {}, which is not a tensor or named twice", operand));
}

}  // namespace cxxinductor
