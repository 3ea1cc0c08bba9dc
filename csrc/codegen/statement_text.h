// Statements over scalar ops (ir/scalar_statements.h) as text of a target.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "ir/scalar_statements.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {

struct StatementSpelling {
  // An op applied to values of dtype `from`: that of its operands, but for a Select's first one.
  std::function<std::string(const ScalarOpInfo& op, DType from, DType to, const std::vector<std::string>& operands)> apply;
  std::function<std::string(const Scalar& value)> literal;
  std::function<std::string(DType dtype)> variable;  // the type in the declaration of a value: "float", "auto"
};

struct StatementValue {
  std::string text;
  DType dtype = DType::F32;
};

// Lines of the steps, each of which declares a value, and those that `use` writes for the results. `inputs` are texts of the inputs.
std::string statement_lines(const ScalarStatements& statements, std::vector<StatementValue> inputs, DType operand, const StatementSpelling& spelling,
                            const std::function<void(const std::vector<StatementValue>& results, TextWriter& out)>& use);

// Inputs that stand for the components of a state: `prefix` and the component's name.
std::vector<StatementValue> component_values(std::span<const TypedName> components, DType operand, std::string_view prefix);

// Ops that a kernel applies, and those of the statements of its reductions, with the dtypes of their results.
void visit_ops(const plan::Kernel& kernel, const std::function<void(ScalarOp op, DType dtype)>& visit);

}  // namespace cxxinductor::codegen
