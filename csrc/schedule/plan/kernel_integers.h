// The integers in a kernel's extents, offsets and other expressions, in an order that does not depend on their values:
// kernels that differ in sizes alone have equal patterns and equally many integers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ir/plan/plan.h"

namespace cxxinductor::schedule {

// Replaces an integer; `fixed`: it stands in a place where generated code gains from knowing it (the length of a row,
// operands of divisions).
using IntegerRewrite = std::function<sym::Expr(int64_t value, bool fixed)>;

// Applies `rewrite` to every integer of the kernel's extents and of its statements' expressions. A sum has an integer as
// its constant term even where that is 0, a term has its coefficient even where that is 1.
void rewrite_integers(plan::Kernel& kernel, const IntegerRewrite& rewrite);

// The kernel's text without names, hints, assumptions and integers.
std::string pattern_of(const plan::Kernel& kernel);

}  // namespace cxxinductor::schedule
