// Internals of the light normal form: sums as maps from monomials to coefficients. Only for sources of sym.
//
// Every Expr is a constant, or a sum of coefficient * monomial with distinct monomials in structural order; a monomial
// is 1, an atom (symbol, quotient, remainder, extremum) or a sorted product of two or more atoms.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "sym/expr.h"

namespace cxxinductor::sym {

using Sum = std::map<Expr, int64_t, Less>;  // monomial -> coefficient, never 0

Expr intern(Kind kind, std::vector<Expr> operands);  // as given: operands must be in normal form
void add_term(Sum& sum, Expr monomial, int64_t coefficient);
Sum as_sum(Expr e);
Expr build(const Sum& sum);
Expr scaled(int64_t coefficient, Expr monomial);
Expr rebuild(Kind kind, const std::vector<Expr>& operands);  // in normal form, whatever the operands
std::vector<Expr> factors_of(Expr monomial);                 // sorted; empty for 1
// monomial / divisor where every factor of the divisor is one of the monomial's.
std::optional<Expr> divide_monomial(Expr monomial, Expr divisor);

}  // namespace cxxinductor::sym
