// Symbolic integers and conditions of ours as c10::SymInt: what ATen's composites compute with when
// they run on tensors without memory.
#pragma once

#include <c10/core/SymInt.h>

#include <memory>
#include <optional>
#include <vector>

#include "model/size_guards.h"

namespace cxxinductor::torch_bridge {

using SharedSizes = std::shared_ptr<model::HintedSizes>;

// A constant becomes a plain integer.
c10::SymInt to_symint(sym::Expr e, const SharedSizes& sizes);
std::vector<c10::SymInt> to_symints(const std::vector<sym::Expr>& expressions, const SharedSizes& sizes);

// Unsupported for symbolic integers of others.
sym::Expr to_expr(const c10::SymInt& size);

}  // namespace cxxinductor::torch_bridge
