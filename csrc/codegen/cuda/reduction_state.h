// States of reductions whose rows name no struct of kernels_templates/cuda: structs like those of cuda/reduce.cuh, generated from the rows' statements.
#pragma once

#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {

// "cxxi_sum<float>"; operand: the dtype of the elements.
std::string cuda_state(Reduction reduction, DType operand);
// Definitions of the generated structs that the kernels use. They follow cuda/join.cuh in a unit.
void emit_cuda_states(const std::vector<const plan::Kernel*>& kernels, TextWriter& out);

}  // namespace cxxinductor::codegen
