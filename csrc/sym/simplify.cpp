#include "sym/simplify.h"

#include <algorithm>
#include <numeric>

#include "sym/algebra.h"

namespace cxxinductor::sym {
namespace {

constexpr int64_t minus_infinity = std::numeric_limits<int64_t>::min();
constexpr int64_t plus_infinity = std::numeric_limits<int64_t>::max();

int64_t saturate(__int128 value) {
  if (value <= minus_infinity) return minus_infinity;
  if (value >= plus_infinity) return plus_infinity;
  return static_cast<int64_t>(value);
}

bool infinite(int64_t value) { return value == minus_infinity || value == plus_infinity; }

int64_t add_bound(int64_t a, int64_t b) {
  if (infinite(a)) return a;
  if (infinite(b)) return b;
  return saturate(static_cast<__int128>(a) + b);
}

int64_t multiply_bound(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (infinite(a) || infinite(b)) return (a < 0) == (b < 0) ? plus_infinity : minus_infinity;
  return saturate(static_cast<__int128>(a) * b);
}

int64_t divide_bound(int64_t a, int64_t b) {  // b > 0
  if (infinite(a)) return a;
  if (b == plus_infinity) return a < 0 ? -1 : 0;
  const int64_t q = a / b;
  return (a % b != 0 && a < 0) ? q - 1 : q;
}

Interval multiply(Interval a, Interval b) {
  const int64_t products[] = {multiply_bound(a.low, b.low), multiply_bound(a.low, b.high), multiply_bound(a.high, b.low),
                              multiply_bound(a.high, b.high)};
  return {*std::min_element(products, products + 4), *std::max_element(products, products + 4)};
}

Interval divide(Interval a, Interval b) {
  if (b.low <= 0) return {};
  const int64_t quotients[] = {divide_bound(a.low, b.low), divide_bound(a.low, b.high), divide_bound(a.high, b.low),
                               divide_bound(a.high, b.high)};
  return {*std::min_element(quotients, quotients + 4), *std::max_element(quotients, quotients + 4)};
}

Interval modulo(Interval a, Interval b) {
  if (b.low <= 0) return {};
  const int64_t top = infinite(b.high) ? plus_infinity : b.high - 1;
  if (a.low >= 0 && a.high < b.low) return a;
  return {0, a.low >= 0 ? std::min(a.high, top) : top};
}

// whole / d where d is known to divide every term of whole.
Expr exact_quotient(Expr whole, int64_t d) {
  Expr out(0);
  for (const Term& term : linear_terms(whole)) {
    if (term.coefficient % d == 0)
      out = out + Expr(term.coefficient / d) * term.monomial;
    else
      out = out + floor_div(Expr(term.coefficient) * term.monomial, Expr(d));
  }
  return out;
}

// One pass of the rules with ranges over a node whose operands are simplified already.
Expr rewrite_quotient(Expr e, const Facts& facts) {
  const Expr a = e.operands()[0], b = e.operands()[1];
  const Interval range = bounds(a, facts), divisor = bounds(b, facts);
  const bool is_mod = e.kind() == Kind::Mod;
  // a // b -> 0, a mod b -> a  where 0 <= a < b
  if (range.low >= 0 && divisor.low > 0 && prove_less(a, b, facts).value_or(false)) return is_mod ? a : Expr(0);
  if (!b.is_constant() || b.constant() <= 0) {
    if (b.is_symbol() && is_mod && divisor.low > 0) {
      // (b*q + r) mod b -> r mod b
      Expr coefficient, rest;
      if (split_linear(a, b, &coefficient, &rest) && !coefficient.is_constant(0)) return mod(rest, b);
    }
    if (b.is_symbol() && !is_mod && divisor.low > 0) {
      // (b*q + r) // b -> q + r // b
      Expr coefficient, rest;
      if (split_linear(a, b, &coefficient, &rest) && !coefficient.is_constant(0)) return coefficient + floor_div(rest, b);
    }
    return e;
  }
  const int64_t d = b.constant();
  // Terms that d divides leave the quotient; what remains is bounded on its own.
  Expr whole(0), rest(0);
  for (const Term& term : linear_terms(a)) {
    const Expr part = Expr(term.coefficient) * term.monomial;
    if (prove_divides(d, part, facts))
      whole = whole + part;
    else
      rest = rest + part;
  }
  const Interval left = bounds(rest, facts);
  const bool small = left.low >= 0 && left.high < d;
  if (is_mod) {
    if (small) return rest;
    if (!whole.is_constant(0)) return mod(rest, b);
    // (a mod (d*n)) mod d -> a mod d
    if (a.kind() == Kind::Mod && a.operands()[1].is_constant() && a.operands()[1].constant() % d == 0)
      return mod(a.operands()[0], b);
    return e;
  }
  if (small) return exact_quotient(whole, d);
  // A common divisor g of all terms, and of d, cancels where the rest of the division is a multiple of g.
  const int64_t common = std::gcd(known_divisor(rest, facts), d);
  if (common > 1 && common < d) {
    Expr scaled_terms(0);
    bool exact = true;
    for (const Term& term : linear_terms(rest)) {
      if (term.coefficient % common != 0) {
        exact = false;
        break;
      }
      scaled_terms = scaled_terms + Expr(term.coefficient / common) * term.monomial;
    }
    if (exact) return exact_quotient(whole, d) + floor_div(scaled_terms, Expr(d / common));
  }
  return e;
}

Expr rewrite_extremum(Expr e, const Facts& facts) {
  const bool is_min = e.kind() == Kind::Min;
  std::vector<Expr> kept;
  for (Expr candidate : e.operands()) {
    // Dropped where another operand always wins (the first of equals stays).
    bool dominated = false;
    for (Expr other : e.operands()) {
      if (other == candidate) continue;
      const Interval difference = bounds(is_min ? candidate - other : other - candidate, facts);
      if (difference.low > 0 || (difference.low == 0 && compare(other, candidate) < 0)) dominated = true;
    }
    if (!dominated) kept.push_back(candidate);
  }
  if (kept.empty() || kept.size() == e.operands().size()) return e;
  Expr out = kept[0];
  for (Expr k : kept) out = is_min ? min(out, k) : max(out, k);
  return out;
}

// m * (a // m) + a mod m -> a, over the terms of a sum.
Expr rewrite_sum(Expr e) {
  const std::vector<Term> terms = linear_terms(e);
  for (const Term& t : terms) {
    if (t.monomial.kind() != Kind::Mod) continue;
    const Expr a = t.monomial.operands()[0], m = t.monomial.operands()[1];
    const Expr quotient = floor_div(a, m);
    if (quotient.kind() != Kind::FloorDiv) continue;
    const Expr pair = Expr(t.coefficient) * (m * quotient + t.monomial);
    const Expr other = e - pair;
    // Only where the quotient's term is really there with this coefficient: then the sum loses two terms.
    if (linear_terms(other).size() + linear_terms(pair).size() == terms.size()) return other + Expr(t.coefficient) * a;
  }
  return e;
}

Expr simplify_once(Expr e, const Facts& facts) {
  if (e.is_constant()) return e;
  if (e.is_symbol()) {
    const Interval range = facts.range(e.name());
    return range.low == range.high ? Expr(range.low) : e;
  }
  std::vector<Expr> operands;
  for (Expr operand : e.operands()) operands.push_back(simplify_once(operand, facts));
  Expr out = operands[0];
  switch (e.kind()) {
    case Kind::Add:
      out = sum(operands);
      break;
    case Kind::Mul:
      out = product(operands);
      break;
    case Kind::FloorDiv:
      out = floor_div(operands[0], operands[1]);
      break;
    case Kind::Mod:
      out = mod(operands[0], operands[1]);
      break;
    case Kind::Min:
    case Kind::Max:
      for (Expr operand : operands) out = e.kind() == Kind::Min ? min(out, operand) : max(out, operand);
      break;
    case Kind::Constant:
    case Kind::Symbol:
      break;
  }
  switch (out.kind()) {
    case Kind::Add:
      return rewrite_sum(out);
    case Kind::FloorDiv:
    case Kind::Mod:
      return rewrite_quotient(out, facts);
    case Kind::Min:
    case Kind::Max:
      return rewrite_extremum(out, facts);
    case Kind::Constant:
    case Kind::Symbol:
    case Kind::Mul:
      return out;
  }
  return out;
}

}  // namespace

void Facts::set_range(std::string_view symbol, Interval range) { ranges_.insert_or_assign(std::string(symbol), range); }
void Facts::set_divisor(std::string_view symbol, int64_t divisor) { divisors_.insert_or_assign(std::string(symbol), divisor); }
Interval Facts::range(std::string_view symbol) const {
  auto found = ranges_.find(symbol);
  return found == ranges_.end() ? Interval{} : found->second;
}
int64_t Facts::divisor(std::string_view symbol) const {
  auto found = divisors_.find(symbol);
  return found == divisors_.end() ? 1 : found->second;
}

Interval bounds(Expr e, const Facts& facts) {
  switch (e.kind()) {
    case Kind::Constant:
      return {e.constant(), e.constant()};
    case Kind::Symbol:
      return facts.range(e.name());
    case Kind::FloorDiv:
      return divide(bounds(e.operands()[0], facts), bounds(e.operands()[1], facts));
    case Kind::Mod:
      return modulo(bounds(e.operands()[0], facts), bounds(e.operands()[1], facts));
    case Kind::Add:
    case Kind::Mul:
    case Kind::Min:
    case Kind::Max:
      break;
  }
  Interval out = bounds(e.operands()[0], facts);
  for (Expr operand : e.operands().subspan(1)) {
    const Interval other = bounds(operand, facts);
    if (e.kind() == Kind::Add)
      out = {add_bound(out.low, other.low), add_bound(out.high, other.high)};
    else if (e.kind() == Kind::Mul)
      out = multiply(out, other);
    else if (e.kind() == Kind::Min)
      out = {std::min(out.low, other.low), std::min(out.high, other.high)};
    else
      out = {std::max(out.low, other.low), std::max(out.high, other.high)};
  }
  return out;
}

int64_t known_divisor(Expr e, const Facts& facts) {
  switch (e.kind()) {
    case Kind::Constant:
      return e.constant() == minus_infinity ? 1 : std::abs(e.constant());
    case Kind::Symbol:
      return facts.divisor(e.name());
    case Kind::Add:
    case Kind::Min:
    case Kind::Max: {
      int64_t divisor = 0;
      for (Expr operand : e.operands()) divisor = std::gcd(divisor, known_divisor(operand, facts));
      return divisor;
    }
    case Kind::Mul: {
      int64_t divisor = 1;
      for (Expr operand : e.operands()) {
        int64_t next;
        if (__builtin_mul_overflow(divisor, known_divisor(operand, facts), &next)) return divisor;
        divisor = next;
      }
      return divisor;
    }
    case Kind::Mod:
      return std::gcd(known_divisor(e.operands()[0], facts), known_divisor(e.operands()[1], facts));
    case Kind::FloorDiv: {
      const int64_t a = known_divisor(e.operands()[0], facts);
      const Expr b = e.operands()[1];
      if (b.is_constant() && b.constant() > 0 && a % b.constant() == 0) return a / b.constant();
      return 1;
    }
  }
  return 1;
}

Expr simplify(Expr e, const Facts& facts) {
  for (int round = 0; round < 16; ++round) {
    const Expr next = simplify_once(e, facts);
    if (next == e) return e;
    e = next;
  }
  return e;
}

std::optional<bool> prove_less(Expr a, Expr b, const Facts& facts) {
  const Interval difference = bounds(a - b, facts);
  if (difference.high < 0) return true;
  if (difference.low >= 0) return false;
  const Interval left = bounds(a, facts), right = bounds(b, facts);
  if (left.high < right.low) return true;
  if (left.low >= right.high && !infinite(left.low)) return false;
  return std::nullopt;
}

bool prove_equal(Expr a, Expr b, const Facts& facts) {
  if (a == b) return true;
  const Expr difference = simplify(a - b, facts);
  if (difference.is_constant()) return difference.constant() == 0;
  return equal_as_polynomials(difference, Expr(0));
}

bool prove_divides(int64_t divisor, Expr e, const Facts& facts) {
  if (divisor == 0) return e.is_constant(0);
  return known_divisor(e, facts) % divisor == 0;
}

}  // namespace cxxinductor::sym
