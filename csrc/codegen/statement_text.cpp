#include "codegen/statement_text.h"

#include <fmt/format.h>

#include "ir/loops/stmt_properties.h"
#include "support/error.h"

namespace cxxinductor::codegen {

std::string statement_lines(const ScalarStatements& statements, std::vector<StatementValue> values, DType operand, const StatementSpelling& spelling,
                            const std::function<void(const std::vector<StatementValue>& results, TextWriter& out)>& use) {
  TextWriter out;
  CXXI_CHECK(values.size() == statements.input_count(), "statements of {} inputs, found {}", statements.input_count(), values.size());
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
    const std::string name = fmt::format("n{}", values.size());
    out.line("const {} {} = {};", spelling.variable(dtype), name, spelling.apply(op, from, dtype, operands));
    values.push_back({name, dtype});
  }
  std::vector<StatementValue> results;
  for (size_t value : statements.results()) results.push_back(values[value]);
  use(results, out);
  return std::move(out).take();
}

std::vector<StatementValue> component_values(std::span<const TypedName> components, DType operand, std::string_view prefix) {
  std::vector<StatementValue> values;
  for (const TypedName& component : components) values.push_back({fmt::format("{}{}", prefix, component.name), component.dtype(operand)});
  return values;
}

void visit_ops(const plan::Kernel& kernel, const std::function<void(ScalarOp op, DType dtype)>& visit) {
  for (const loops::Stmt& stmt : kernel.region.body) {
    if (const auto* apply = stmt.as<loops::Apply>()) visit(apply->op, stmt.dtype);
    const auto state = row_state(stmt);
    if (!state) continue;
    const ReductionForm& of = form(state->reduction);
    const DType operand = compute_type(kernel.region.body[state->operand].dtype);
    for (const ScalarStatements* statements : {&of.start, &of.lift, &of.merge, &of.finish})
      for (const ScalarStatements::Step& step : statements->steps())
        if (step.literal == ScalarStatements::Literal::None) visit(step.op, step.type.value_or(operand));
  }
}

}  // namespace cxxinductor::codegen
