#include "codegen/statement_text.h"

#include <fmt/format.h>

#include "support/error.h"

namespace cxxinductor::codegen {

std::vector<StatementValue> emit_statements(const ScalarStatements& statements, std::vector<StatementValue> inputs, DType operand, std::string_view prefix,
                                            const StatementSpelling& spelling, TextWriter& out) {
  CXXI_CHECK(inputs.size() == statements.input_count(), "statements of {} inputs, found {}", statements.input_count(), inputs.size());
  std::vector<StatementValue> values = std::move(inputs);
  for (const ScalarStatements::Step& step : statements.steps()) {
    const DType dtype = step.type.value_or(operand);
    if (step.literal != ScalarStatements::Literal::None) {
      values.push_back({spelling.literal(ScalarStatements::literal(step, operand)), dtype});
      continue;
    }
    const ScalarOpInfo& op = info(step.op);
    std::vector<std::string> operands;
    for (size_t value : step.operands) operands.push_back(values[value].text);
    const DType from = values[step.operands.at(op.rule == TypeRule::Select ? 1 : 0)].dtype;
    const std::string name = fmt::format("{}{}", prefix, values.size());
    out.line("const {} {} = {};", spelling.variable(dtype), name, spelling.apply(op, from, dtype, operands));
    values.push_back({name, dtype});
  }
  std::vector<StatementValue> results;
  for (size_t value : statements.results()) results.push_back(values[value]);
  return results;
}

std::vector<StatementValue> component_values(std::span<const TypedName> components, DType operand, std::string_view prefix) {
  std::vector<StatementValue> values;
  for (const TypedName& component : components) values.push_back({fmt::format("{}{}", prefix, component.name), component.dtype(operand)});
  return values;
}

}  // namespace cxxinductor::codegen
