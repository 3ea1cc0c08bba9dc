// Conditions on sizes, as integers: exports and torch.compile state them as sympy.srepr text.
#pragma once

#include <string_view>

#include "sym/expr.h"

namespace cxxinductor::model {

// "StrictLessThan(a, b)" with integers a and b (sym::parse_srepr), "And(p, q)", "Or(p, q)", "Not(p)", "true": an
// expression that is 1 where the condition holds, and 0 where it does not. Unsupported for other conditions.
sym::Expr parse_condition(std::string_view srepr);

}  // namespace cxxinductor::model
