// Spelling of names and ops that all targets share.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/plan/plan.h"
#include "ir/scalar_op.h"

namespace cxxinductor::codegen {

// A name as part of a C identifier.
std::string identifier(std::string_view name);
// Text from the user's model inside a comment or a #line: one line, nothing that ends either.
std::string one_line(std::string_view text);
// The variable that holds the value of a statement.
std::string value_name(plan::StmtId id);
// An op applied to operands. spelling: of the op's row, for the target and T; empty: cxxi_<name>(operands...).
std::string applied_op(const ScalarOpInfo& op, std::string_view spelling, DType dtype, std::string_view type, std::span<const std::string> operands);

}  // namespace cxxinductor::codegen
