// Algebra of index expressions inside an iteration space, with which lowering and fusion compose and analyse coordinates.
// Variables have extents, symbolic ones too, which say more than the ranges of sym::Assumptions can: mod(s0*i + j, s0) is j
// if j < s0.
//
// All results hold for every size that the assumptions allow; where nothing is proven, expressions stay as they are.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/loops/loops.h"

namespace cxxinductor::loops {

using ExprMap = std::unordered_map<sym::Expr, sym::Expr>;

sym::Expr replace(sym::Expr e, const ExprMap& replacements);  // symbols, all at once
bool has_division(sym::Expr e);                               // a FloorDiv or Mod anywhere
sym::Expr expand(sym::Expr e);                                // products distributed over sums
// q with q * divisor == e, where that is visible from the terms.
std::optional<sym::Expr> exact_quotient(sym::Expr e, sym::Expr divisor);

// One variable's share of a coordinate: coordinate = sum of weight * var.
struct Digit {
  sym::Expr var;
  sym::Expr weight;
  sym::Expr extent;
};

class Space {
 public:
  explicit Space(const sym::Assumptions& assumptions) : assumptions_(&assumptions) {}
  Space(const Region& region, const sym::Assumptions& assumptions);
  void add(sym::Expr var, sym::Expr extent) { extents_[var] = extent; }
  const sym::Assumptions& assumptions() const { return *assumptions_; }
  const sym::Expr* extent_of(sym::Expr var) const;  // null: not a variable of this space
  bool equal(sym::Expr a, sym::Expr b) const;       // proven

  // Divisions resolved where the extents allow; unchanged expressions without divisions cost nothing.
  sym::Expr simplify(sym::Expr e) const;
  bool in_range(sym::Expr e, sym::Expr bound) const;  // 0 <= e < bound at every point
  bool at_least(sym::Expr a, sym::Expr b) const;      // a >= b at every point
  // Whether e is small enough for arithmetic of i64, which wraps. Symbols without a bound, and products of different ones, are taken to be what tensors in
  // memory have: at most 2^40.
  bool fits_i64(sym::Expr e) const;
  // The sum, difference or product of i64 values; nothing for other ops, and where a value may wrap.
  std::optional<sym::Expr> apply(ScalarOp op, sym::Expr a, sym::Expr b) const;
  // A comparison of i64 values a and b, where it is the same at every point; nothing for other ops, and where a value may have wrapped.
  std::optional<bool> decide(ScalarOp op, sym::Expr a, sym::Expr b) const;
  // Digits, outermost first, if e counts through [0, size) exactly once as its variables run row-major.
  std::optional<std::vector<Digit>> mixed_radix(sym::Expr e, sym::Expr size) const;
  // Whether the variables in coords run through the index set `sizes` exactly once.
  bool is_bijection(const std::vector<sym::Expr>& coords, const std::vector<sym::Expr>& sizes) const;
  // Values of the digits' variables at which the coordinate is `target` (an expression of *this* space).
  void solve(const std::vector<Digit>& digits, sym::Expr target, ExprMap& solution) const;

 private:
  // e == sum of coefficient * atom + rest; atoms mention variables or statements, coefficients and rest do not.
  struct Term {
    sym::Expr atom, coefficient;
  };
  struct Linear {
    std::vector<Term> terms;
    sym::Expr rest;
  };
  double magnitude(sym::Expr e) const;  // a bound of |e|, taken as fits_i64 says
  bool is_index(sym::Expr e) const;
  Linear linear(sym::Expr e) const;
  std::optional<sym::Expr> extreme(sym::Expr e, bool upper) const;
  std::optional<sym::Expr> extreme_of_atom(sym::Expr atom, bool upper) const;
  // e == quotient * divisor + remainder with the remainder's terms not visibly divisible.
  void split_multiples(sym::Expr e, sym::Expr divisor, sym::Expr* quotient, sym::Expr* remainder) const;
  sym::Expr recombine(sym::Expr e) const;
  sym::Expr divide(sym::Expr e, sym::Expr divisor, bool remainder) const;

  const sym::Assumptions* assumptions_;
  ExprMap extents_;
};

}  // namespace cxxinductor::loops
