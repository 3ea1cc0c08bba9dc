// bounds and known_divisor: ranges and divisors of an expression from those of its symbols.
#include <algorithm>
#include <numeric>

#include "support/error.h"
#include "sym/simplify.h"

namespace cxxinductor::sym {
namespace {

constexpr int64_t smallest = std::numeric_limits<int64_t>::min();
constexpr int64_t largest = std::numeric_limits<int64_t>::max();

// Bounds as 128-bit numbers, where no product of two 64-bit values overflows; beyond the 64-bit ones is infinity.
using Wide = __int128;
constexpr Wide infinity = static_cast<Wide>(1) << 126;

bool infinite(Wide value) { return value >= infinity || value <= -infinity; }

struct WideInterval {
  Wide low = -infinity, high = infinity;
};

// The lowest int64 means "unbounded" only as a lower bound, the highest only as an upper bound.
WideInterval widen(Interval i) { return {i.low == smallest ? -infinity : static_cast<Wide>(i.low), i.high == largest ? infinity : static_cast<Wide>(i.high)}; }
Interval narrow(WideInterval i) {
  const auto clamp = [](Wide v) { return static_cast<int64_t>(std::clamp(v, static_cast<Wide>(smallest), static_cast<Wide>(largest))); };
  return {clamp(i.low), clamp(i.high)};
}

Wide add(Wide a, Wide b) {
  if (infinite(a)) return a;
  return infinite(b) ? b : a + b;
}

Wide multiply(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  if (infinite(a) || infinite(b)) return (a < 0) == (b < 0) ? infinity : -infinity;
  return a * b;
}

Wide divide(Wide a, Wide b) {  // b > 0; towards minus infinity, also in the limit
  if (infinite(b)) return a < 0 ? -1 : 0;
  if (infinite(a)) return a;
  const Wide q = a / b;
  return (a % b != 0 && a < 0) ? q - 1 : q;
}

template <class F>
WideInterval hull(WideInterval a, WideInterval b, F combine) {
  const Wide corners[] = {combine(a.low, b.low), combine(a.low, b.high), combine(a.high, b.low), combine(a.high, b.high)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

WideInterval modulo(WideInterval a, WideInterval b) {
  if (b.low <= 0) return {};
  if (a.low >= 0 && a.high < b.low) return a;
  const Wide top = infinite(b.high) ? b.high : b.high - 1;
  return {0, a.low >= 0 ? std::min(a.high, top) : top};
}

WideInterval wide_bounds(Expr e, const Assumptions& assumptions);

bool is_division(Expr e) { return e.kind() == Kind::FloorDiv && e.operands()[1].is_constant() && e.operands()[1].constant() > 0; }

// One bound of a sum in which a dividend occurs outside of its division too: s - floordiv(s + 1, 2) is at least 1 for s
// >= 2, which the ranges of the two terms do not say. With k the divisor, (x - k + 1) / k <= floordiv(x, k) <= x / k,
// so that the sum times all divisors is bounded by one without division, where like terms cancel. Infinite where that
// leads nowhere.
Wide bound_of_quotients(Expr sum, const Assumptions& assumptions, bool upper) {
  constexpr int64_t most = int64_t{1} << 20;
  int64_t scale = 1;
  const std::vector<Term> terms = linear_terms(sum);
  const Wide none = upper ? infinity : -infinity;
  for (const Term& term : terms) {
    if (is_division(term.monomial)) scale = std::lcm(scale, std::min(term.monomial.operands()[1].constant(), most));
    if (scale >= most) return none;
  }
  if (scale == 1) return none;
  try {
    Expr scaled = 0;
    for (const Term& term : terms) {
      if (!is_division(term.monomial)) {
        scaled = scaled + term.monomial * (Expr(scale) * term.coefficient);
        continue;
      }
      const int64_t divisor = term.monomial.operands()[1].constant();
      const bool exact = (term.coefficient > 0) == upper;
      const Expr dividend = exact ? term.monomial.operands()[0] : term.monomial.operands()[0] - (divisor - 1);
      scaled = scaled + dividend * (Expr(scale / divisor) * term.coefficient);
    }
    const WideInterval found = wide_bounds(scaled, assumptions);
    if (upper) return divide(found.high, scale);
    return infinite(found.low) ? found.low : -divide(-found.low, scale);
  } catch (const Unsupported&) {  // a coefficient beyond 64 bits
    return none;
  }
}

bool is_product_of_unknowns(Expr term) {
  if (term.kind() != Kind::Mul) return false;
  const auto unknown = [](Expr factor) { return !factor.is_constant(); };
  return std::count_if(term.operands().begin(), term.operands().end(), unknown) > 1;
}

// The monomial without one factor; false where it has none.
bool divide_by(Expr monomial, Expr factor, Expr* quotient) {
  if (monomial == factor) {
    *quotient = 1;
    return true;
  }
  if (monomial.kind() != Kind::Mul) return false;
  std::vector<Expr> factors(monomial.operands().begin(), monomial.operands().end());
  const auto found = std::find(factors.begin(), factors.end(), factor);
  if (found == factors.end()) return false;
  factors.erase(found);
  *quotient = product(factors);
  return true;
}

// A symbol that all terms of a sum share is a factor of it: s*t - s is at least 2 for s, t >= 2, which the ranges of the terms do not say.
WideInterval bounds_by_factor(Expr sum, const Assumptions& assumptions) {
  const std::vector<Term> terms = linear_terms(sum);
  for (Expr symbol : terms.front().monomial.free_symbols()) {
    Expr rest = 0, quotient;
    const bool shared = std::all_of(terms.begin(), terms.end(), [&](const Term& term) {
      if (!divide_by(term.monomial, symbol, &quotient)) return false;
      rest = rest + quotient * term.coefficient;
      return true;
    });
    if (shared) return widen(narrow(hull(wide_bounds(symbol, assumptions), wide_bounds(rest, assumptions), multiply)));
  }
  return {};
}

WideInterval wide_bounds(Expr e, const Assumptions& assumptions) {
  switch (e.kind()) {
    case Kind::Constant:
      return {e.constant(), e.constant()};
    case Kind::Symbol:
      return widen(assumptions.range(e.name()));
    case Kind::FloorDiv: {
      const WideInterval b = wide_bounds(e.operands()[1], assumptions);
      return b.low > 0 ? hull(wide_bounds(e.operands()[0], assumptions), b, divide) : WideInterval{};
    }
    case Kind::Mod:
      return modulo(wide_bounds(e.operands()[0], assumptions), wide_bounds(e.operands()[1], assumptions));
    case Kind::Add:
    case Kind::Mul:
    case Kind::Min:
    case Kind::Max:
      break;
  }
  WideInterval out = wide_bounds(e.operands()[0], assumptions);
  for (Expr operand : e.operands().subspan(1)) {
    const WideInterval other = wide_bounds(operand, assumptions);
    if (e.kind() == Kind::Add)
      out = {add(out.low, other.low), add(out.high, other.high)};
    else if (e.kind() == Kind::Mul)
      out = widen(narrow(hull(out, other, multiply)));
    else if (e.kind() == Kind::Min)
      out = {std::min(out.low, other.low), std::min(out.high, other.high)};
    else
      out = {std::max(out.low, other.low), std::max(out.high, other.high)};
  }
  const auto divides = [](Expr term) {
    return is_division(term) || (term.kind() == Kind::Mul && std::any_of(term.operands().begin(), term.operands().end(), is_division));
  };
  if (e.kind() == Kind::Add && std::any_of(e.operands().begin(), e.operands().end(), divides))
    out = {std::max(out.low, bound_of_quotients(e, assumptions, false)), std::min(out.high, bound_of_quotients(e, assumptions, true))};
  if (e.kind() == Kind::Add && std::any_of(e.operands().begin(), e.operands().end(), is_product_of_unknowns)) {
    const WideInterval found = bounds_by_factor(e, assumptions);
    out = {std::max(out.low, found.low), std::min(out.high, found.high)};
  }
  return out;
}

}  // namespace

void Assumptions::set_range(std::string_view symbol, Interval range) { ranges_.insert_or_assign(std::string(symbol), range); }
void Assumptions::set_divisor(std::string_view symbol, int64_t divisor) { divisors_.insert_or_assign(std::string(symbol), divisor); }
Interval Assumptions::range(std::string_view symbol) const {
  auto found = ranges_.find(symbol);
  return found == ranges_.end() ? Interval{} : found->second;
}
int64_t Assumptions::divisor(std::string_view symbol) const {
  auto found = divisors_.find(symbol);
  return found == divisors_.end() ? 1 : found->second;
}

Assumptions joined(const Assumptions& a, const Assumptions& b) {
  Assumptions both = a;
  for (const auto& [symbol, range] : b.ranges()) {
    const Interval other = a.range(symbol);
    const int64_t low = std::max(range.low, other.low);
    both.set_range(symbol, {low, std::max(low, std::min(range.high, other.high))});
  }
  for (const auto& [symbol, divisor] : b.divisors()) both.set_divisor(symbol, std::lcm(divisor, a.divisor(symbol)));
  return both;
}

Interval bounds(Expr e, const Assumptions& assumptions) { return narrow(wide_bounds(e, assumptions)); }

int64_t known_divisor(Expr e, const Assumptions& assumptions) {
  switch (e.kind()) {
    case Kind::Constant:
      return e.constant() == smallest ? 1 : std::abs(e.constant());
    case Kind::Symbol:
      return assumptions.divisor(e.name());
    case Kind::Add:
    case Kind::Min:
    case Kind::Max: {
      int64_t divisor = 0;
      for (Expr operand : e.operands()) divisor = std::gcd(divisor, known_divisor(operand, assumptions));
      return divisor;
    }
    case Kind::Mul: {
      int64_t divisor = 1;
      for (Expr operand : e.operands()) {
        int64_t next;
        if (__builtin_mul_overflow(divisor, known_divisor(operand, assumptions), &next)) return divisor;
        divisor = next;
      }
      return divisor;
    }
    case Kind::Mod:
      return std::gcd(known_divisor(e.operands()[0], assumptions), known_divisor(e.operands()[1], assumptions));
    case Kind::FloorDiv: {
      const int64_t a = known_divisor(e.operands()[0], assumptions);
      const Expr b = e.operands()[1];
      if (b.is_constant() && b.constant() > 0 && a % b.constant() == 0) return a / b.constant();
      return 1;
    }
  }
  return 1;
}

}  // namespace cxxinductor::sym
