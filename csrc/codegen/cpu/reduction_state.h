// States of reductions whose rows name no struct of kernels_templates/cpu: structs like those of cpu/reduce.h, generated from the rows' statements.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {

// "cxxi::sum": a template over dtype and lanes. long_positions: the reduced space has more points than an int counts.
std::string cpu_state(Reduction reduction, DType operand, bool long_positions);
// Definitions of the generated structs that the kernels use. They follow the templates of a unit.
void emit_cpu_states(const std::vector<const plan::Kernel*>& kernels, TextWriter& out);
// Scalar ops of the generated structs, and the dtypes that they are applied to.
void visit_cpu_state_ops(const plan::Kernel& kernel, const std::function<void(const ScalarOpInfo& op, DType dtype)>& visit);

}  // namespace cxxinductor::codegen
