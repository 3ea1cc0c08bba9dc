// Polynomial algebra through GiNaC, behind one lock: GiNaC is not thread-safe even on disjoint expressions, so nothing on
// a hot path calls this. Subterms that are not polynomials (floor division, modulo, min, max) count as fresh symbols.
#pragma once

#include <optional>

#include "sym/expr.h"

namespace cxxinductor::sym {

bool equal_as_polynomials(Expr a, Expr b);
// The value of `symbol` that makes lhs == rhs when the equation is linear in it with an exact integer-coefficient
// solution (the coefficient of the symbol divides the rest); nullopt otherwise.
std::optional<Expr> solve_linear(Expr lhs, Expr rhs, Expr symbol);

}  // namespace cxxinductor::sym
