// floor_div and mod in light normal form: the rules that hold without any assumptions (but for a divisor that is not zero).
#include <algorithm>
#include <numeric>

#include "sym/integer.h"
#include "sym/normal_form.h"

namespace cxxinductor::sym {
namespace {

// A divisor as coefficient * monomial with a positive coefficient.
struct Divisor {
  int64_t coefficient = 1;
  Expr monomial = Expr(1);
  bool constant() const { return monomial.is_constant(1); }
  Expr expr() const { return scaled(coefficient, monomial); }
};

// nullopt for a sum, which nothing cancels.
std::optional<Divisor> as_divisor(Expr b) {
  if (b.kind() == Kind::Add) return std::nullopt;
  const auto [monomial, coefficient] = *as_sum(b).begin();
  if (coefficient <= 0) return std::nullopt;
  return Divisor{coefficient, monomial};
}

bool negative(Expr b) {
  if (b.kind() == Kind::Add) return false;
  const int64_t coefficient = as_sum(b).begin()->second;
  return coefficient < 0 && coefficient != std::numeric_limits<int64_t>::min();
}

// a == quotient * divisor + rest, where rest has no term that visibly is a multiple of the divisor and, for constant
// divisors, a constant term in [0, divisor).
struct Split {
  Sum quotient, rest;
};
Split split(Expr a, const Divisor& divisor) {
  Split out;
  for (const auto& [monomial, coefficient] : as_sum(a)) {
    if (divisor.constant() && monomial.is_constant(1)) {
      add_term(out.quotient, monomial, floor_quotient(coefficient, divisor.coefficient));
      add_term(out.rest, monomial, floor_remainder(coefficient, divisor.coefficient));
      continue;
    }
    const auto cofactor = divide_monomial(monomial, divisor.monomial);
    if (cofactor && coefficient % divisor.coefficient == 0)
      add_term(out.quotient, *cofactor, coefficient / divisor.coefficient);
    else
      add_term(out.rest, monomial, coefficient);
  }
  return out;
}

// rest == factor * reduced + left and divisor == factor * reduced_divisor; left, in [0, factor), only where both are
// constant: then it changes neither quotient.
struct Reduced {
  Expr factor, rest;
  Divisor divisor;
  int64_t left = 0;
};
std::optional<Reduced> cancel_common_factor(const Sum& rest, const Divisor& divisor) {
  int64_t common = divisor.coefficient;
  std::vector<Expr> shared = factors_of(divisor.monomial);
  for (const auto& [monomial, coefficient] : rest) {
    if (divisor.constant() && monomial.is_constant(1)) continue;
    common = std::gcd(common, coefficient);
    std::vector<Expr> both;
    const std::vector<Expr> factors = factors_of(monomial);
    std::set_intersection(shared.begin(), shared.end(), factors.begin(), factors.end(), std::back_inserter(both), Less());
    shared = both;
  }
  if (common == 1 && shared.empty()) return std::nullopt;
  const Expr shared_monomial = product(shared);
  Reduced out{scaled(common, shared_monomial), Expr(0), {divisor.coefficient / common, *divide_monomial(divisor.monomial, shared_monomial)}};
  Sum reduced;
  for (const auto& [monomial, coefficient] : rest) {
    if (divisor.constant() && monomial.is_constant(1)) {
      add_term(reduced, monomial, coefficient / common);
      out.left = coefficient % common;
    } else {
      add_term(reduced, *divide_monomial(monomial, shared_monomial), coefficient / common);
    }
  }
  out.rest = build(reduced);
  return out;
}

// (x // p + k) // q -> (x + k*p) // (p*q)   p, q > 0
std::optional<Expr> merge_nested(const Sum& rest, int64_t q) {
  Expr inner;
  int64_t k = 0;
  for (const auto& [monomial, coefficient] : rest) {
    if (monomial.is_constant(1)) {
      k = coefficient;
    } else if (monomial.kind() == Kind::FloorDiv && coefficient == 1 && inner.is_constant(0)) {
      inner = monomial;
    } else {
      return std::nullopt;
    }
  }
  if (inner.is_constant(0) || !inner.operands()[1].is_constant() || inner.operands()[1].constant() <= 0) return std::nullopt;
  const int64_t p = inner.operands()[1].constant();
  int64_t shift, divisor;
  if (__builtin_mul_overflow(k, p, &shift) || __builtin_mul_overflow(p, q, &divisor)) return std::nullopt;
  return floor_div(inner.operands()[0] + Expr(shift), Expr(divisor));
}

// k * (x mod m) -> k * x within something taken modulo d, where d divides k*m
bool drop_inner_moduli(const Sum& rest, int64_t d, Expr* out) {
  Expr total(0);
  bool changed = false;
  for (const auto& [monomial, coefficient] : rest) {
    int64_t period;
    if (monomial.kind() == Kind::Mod && monomial.operands()[1].is_constant() &&
        !__builtin_mul_overflow(coefficient, monomial.operands()[1].constant(), &period) && period % d == 0) {
      total = total + Expr(coefficient) * monomial.operands()[0];
      changed = true;
    } else {
      total = total + scaled(coefficient, monomial);
    }
  }
  *out = total;
  return changed;
}

}  // namespace

Expr floor_div(Expr a, Expr b) {
  if (b.is_constant(0)) throw_user_error("division by zero in a size or index expression");
  if (a.is_constant(0) || b.is_constant(1)) return a;
  if (a.is_constant() && b.is_constant()) return Expr(floor_quotient(a.constant(), b.constant()));
  if (a == b) return Expr(1);
  if (negative(b)) return floor_div(-a, -b);
  const auto divisor = as_divisor(b);
  if (!divisor) return intern(Kind::FloorDiv, {a, b});
  const auto [quotient, rest] = split(a, *divisor);
  if (!quotient.empty()) return build(quotient) + floor_div(build(rest), b);
  if (const auto reduced = cancel_common_factor(rest, *divisor)) return floor_div(reduced->rest, reduced->divisor.expr());
  if (divisor->constant()) {
    if (const auto merged = merge_nested(rest, divisor->coefficient)) return *merged;
  }
  return intern(Kind::FloorDiv, {a, b});
}

Expr mod(Expr a, Expr b) {
  if (b.is_constant(0)) throw_user_error("division by zero in a size or index expression");
  if (a.is_constant(0) || b.is_constant(1) || a == b) return Expr(0);
  if (a.is_constant() && b.is_constant()) return Expr(floor_remainder(a.constant(), b.constant()));
  if (negative(b)) return -mod(-a, -b);
  const auto divisor = as_divisor(b);
  if (!divisor) return intern(Kind::Mod, {a, b});
  const auto [quotient, rest] = split(a, *divisor);
  if (!quotient.empty()) return mod(build(rest), b);
  if (divisor->constant()) {
    Expr inner;
    if (drop_inner_moduli(rest, divisor->coefficient, &inner)) return mod(inner, b);
  }
  if (const auto reduced = cancel_common_factor(rest, *divisor)) return reduced->factor * mod(reduced->rest, reduced->divisor.expr()) + Expr(reduced->left);
  return intern(Kind::Mod, {a, b});
}

Expr ceil_div(Expr a, Expr b) { return -floor_div(-a, b); }

}  // namespace cxxinductor::sym
