#include "sym/simplify.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "sym/algebra.h"
#include "sym/integer.h"
#include "sym/normal_form.h"

namespace cxxinductor::sym {
namespace {

// Bounds of a - b; nothing is known where the difference itself overflows.
Interval difference_bounds(Expr a, Expr b, const Assumptions& assumptions) {
  try {
    return bounds(a - b, assumptions);
  } catch (const Unsupported&) {
    return {};
  }
}

bool at_least(Expr a, Expr b, const Assumptions& assumptions) {
  return difference_bounds(a, b, assumptions).low >= 0 || bounds(a, assumptions).low >= bounds(b, assumptions).high;
}

// a == step * multiple + left, with 0 <= left < step for every assignment.
struct Grouping {
  int64_t step;
  Expr multiple, left;
};

std::optional<Grouping> group(const std::vector<Term>& terms, int64_t step, int64_t divisor, const Assumptions& assumptions) {
  Expr multiple(0), rest(0);
  for (const Term& term : terms) {
    const Expr part = scaled(term.coefficient, term.monomial);
    if (term.coefficient % step == 0)
      multiple = multiple + scaled(term.coefficient / step, term.monomial);
    else if (step == divisor && prove_divides(step, part, assumptions))
      multiple = multiple + floor_div(part, Expr(step));  // exact: the assumptions say so
    else
      rest = rest + part;
  }
  if (multiple.is_constant(0)) return std::nullopt;
  const Interval range = bounds(rest, assumptions);
  const bool unbounded = range.low == std::numeric_limits<int64_t>::min() || range.high == std::numeric_limits<int64_t>::max();
  if (unbounded || floor_quotient(range.low, step) != floor_quotient(range.high, step)) return std::nullopt;
  const int64_t window = floor_quotient(range.low, step);
  return Grouping{step, multiple + Expr(window), rest - Expr(window) * Expr(step)};
}

// (g*y + r) // (g*d) -> y // d,  (g*y + r) mod (g*d) -> g*(y mod d) + r   0 <= r < g
// Candidates for g come from the terms themselves, the divisor first: (d*y + r) // d -> y.
std::optional<Expr> rewrite_grouped(Expr a, int64_t divisor, bool is_mod, const Assumptions& assumptions) {
  const std::vector<Term> terms = linear_terms(a);
  std::set<int64_t, std::greater<>> steps{divisor};
  for (const Term& term : terms) steps.insert(std::gcd(term.coefficient, divisor));
  for (const int64_t step : steps) {
    if (step == 1) break;
    const auto found = group(terms, step, divisor, assumptions);
    if (!found) continue;
    const Expr left_divisor(divisor / step);
    return is_mod ? Expr(step) * mod(found->multiple, left_divisor) + found->left : floor_div(found->multiple, left_divisor);
  }
  return std::nullopt;
}

Expr rewrite_quotient(Expr e, const Assumptions& assumptions) {
  const Expr a = e.operands()[0], b = e.operands()[1];
  const bool is_mod = e.kind() == Kind::Mod;
  // a // b -> 0, a mod b -> a   0 <= a < b
  if (bounds(a, assumptions).low >= 0 && prove_less(a, b, assumptions).value_or(false)) return is_mod ? a : Expr(0);
  if (!b.is_constant() || b.constant() <= 0) return e;
  const int64_t d = b.constant();
  // a // d -> q, a mod d -> a - q*d   q*d <= a < (q+1)*d
  const Interval range = bounds(a, assumptions);
  if (range.low != std::numeric_limits<int64_t>::min() && range.high != std::numeric_limits<int64_t>::max() &&
      floor_quotient(range.low, d) == floor_quotient(range.high, d)) {
    const Expr quotient(floor_quotient(range.low, d));
    return is_mod ? a - quotient * b : quotient;
  }
  // (x mod (m*n)) // m -> (x // m) mod n   m, n > 0
  if (!is_mod && a.kind() == Kind::Mod && a.operands()[1].is_constant() && a.operands()[1].constant() > 0 && a.operands()[1].constant() % d == 0)
    return mod(floor_div(a.operands()[0], b), Expr(a.operands()[1].constant() / d));
  return rewrite_grouped(a, d, is_mod, assumptions).value_or(e);
}

// Drops operands that another remaining one always dominates.
Expr rewrite_extremum(Expr e, const Assumptions& assumptions) {
  const bool is_min = e.kind() == Kind::Min;
  std::vector<Expr> kept(e.operands().begin(), e.operands().end());
  for (size_t i = 0; i < kept.size();) {
    const bool beaten = std::any_of(kept.begin(), kept.end(), [&](Expr other) {
      return other != kept[i] && (is_min ? at_least(kept[i], other, assumptions) : at_least(other, kept[i], assumptions));
    });
    if (beaten)
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  if (kept.size() == e.operands().size()) return e;
  Expr out = kept[0];
  for (Expr k : kept) out = is_min ? min(out, k) : max(out, k);
  return out;
}

// c*m * (a // m) + c * (a mod m)          -> c*a
// c*m * ((a // m) mod n) + c * (a mod m)  -> c * (a mod (m*n))   m, n > 0
Expr rewrite_sum(Expr e) {
  const std::vector<Term> terms = linear_terms(e);
  for (const Term& remainder : terms) {
    if (remainder.monomial.kind() != Kind::Mod) continue;
    const Expr c(remainder.coefficient), a = remainder.monomial.operands()[0], m = remainder.monomial.operands()[1];
    const Expr quotient = floor_div(a, m);
    for (const Term& partner : terms) {
      const Expr pair_member = scaled(partner.coefficient, partner.monomial);
      const auto replace_pair = [&](Expr value) { return e - c * remainder.monomial - pair_member + c * value; };
      if (quotient.kind() == Kind::FloorDiv && c * m * quotient == pair_member) return replace_pair(a);
      if (!m.is_constant() || m.constant() <= 0 || partner.monomial.kind() != Kind::Mod) continue;
      const Expr n = partner.monomial.operands()[1];
      if (partner.monomial.operands()[0] == quotient && n.is_constant() && n.constant() > 0 && c * m * partner.monomial == pair_member)
        return replace_pair(mod(a, m * n));
    }
  }
  return e;
}

// c*d * x * (a // d) -> c * x * a   d divides a
Expr rewrite_exact_quotients(Expr e, const Assumptions& assumptions) {
  Expr out = e;
  for (const Term& term : linear_terms(e)) {
    std::vector<Expr> factors = factors_of(term.monomial);
    const auto exact = std::find_if(factors.begin(), factors.end(), [&](Expr factor) {
      if (factor.kind() != Kind::FloorDiv) return false;
      const Expr a = factor.operands()[0], d = factor.operands()[1];
      return d.is_constant() && d.constant() > 0 && term.coefficient % d.constant() == 0 && prove_divides(d.constant(), a, assumptions);
    });
    if (exact == factors.end()) continue;
    const Expr a = exact->operands()[0], d = exact->operands()[1];
    factors.erase(exact);
    out = out - scaled(term.coefficient, term.monomial) + Expr(term.coefficient / d.constant()) * product(factors) * a;
  }
  return out;
}

// One pass of the rules, operands first.
Expr simplify_once(Expr e, const Assumptions& assumptions) {
  if (e.is_constant()) return e;
  if (e.is_symbol()) {
    const Interval range = assumptions.range(e.name());
    return range.low == range.high ? Expr(range.low) : e;
  }
  std::vector<Expr> operands;
  for (Expr operand : e.operands()) operands.push_back(simplify_once(operand, assumptions));
  const Expr out = rebuild(e.kind(), operands);
  switch (out.kind()) {
    case Kind::Add:
      return rewrite_exact_quotients(rewrite_sum(out), assumptions);
    case Kind::FloorDiv:
    case Kind::Mod:
      return rewrite_quotient(out, assumptions);
    case Kind::Min:
    case Kind::Max:
      return rewrite_extremum(out, assumptions);
    case Kind::Constant:
    case Kind::Symbol:
      return out;
    case Kind::Mul:
      return rewrite_exact_quotients(out, assumptions);
  }
  return out;
}

}  // namespace

Expr simplify(Expr e, const Assumptions& assumptions) {
  // Each rule removes or shrinks a quotient, remainder, extremum or term; the bound only guards against a faulty rule.
  constexpr int most_rounds = 32;
  try {
    for (int round = 0; round < most_rounds; ++round) {
      const Expr next = simplify_once(e, assumptions);
      if (next == e) return e;
      e = next;
    }
  } catch (const Unsupported&) {
    // A rewritten form may overflow although the given one does not.
  }
  return e;
}

std::optional<bool> prove_less(Expr a, Expr b, const Assumptions& assumptions) {
  if (a.is_constant() && b.is_constant()) return a.constant() < b.constant();
  const Interval difference = difference_bounds(a, b, assumptions);
  if (difference.high < 0) return true;
  if (difference.low >= 0) return false;
  const Interval left = bounds(a, assumptions), right = bounds(b, assumptions);
  if (left.high < right.low) return true;
  if (left.low >= right.high) return false;
  return std::nullopt;
}

bool prove_equal(Expr a, Expr b, const Assumptions& assumptions) {
  if (a == b) return true;
  if (a.is_constant() && b.is_constant()) return false;
  try {
    // The light form is an expanded polynomial in its atoms: equal ones cancel to 0.
    return simplify(a - b, assumptions).is_constant(0);
  } catch (const Unsupported&) {
    return equal_as_polynomials(a, b);  // the difference overflows 64 bits; GiNaC's numbers do not
  }
}

bool prove_divides(int64_t divisor, Expr e, const Assumptions& assumptions) {
  if (divisor == 0) return e.is_constant(0);
  return known_divisor(e, assumptions) % divisor == 0;
}

// Of a size that is not known when a graph is planned. Plans must be right for all sizes; this one decides between costs.
constexpr int64_t default_size_hint = 64;

int64_t estimate(Expr e, const Assumptions& assumptions) {
  return evaluate(e, [&](std::string_view name) {
    const Interval range = assumptions.range(name);
    return std::clamp(default_size_hint, range.low, std::max(range.low, range.high));
  });
}

}  // namespace cxxinductor::sym
