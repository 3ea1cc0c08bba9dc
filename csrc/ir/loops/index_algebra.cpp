#include "ir/loops/index_algebra.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "support/error.h"

namespace cxxinductor::loops {
namespace {

constexpr double most_positions = 1LL << 40;  // see fits_i64

sym::Expr rebuild(sym::Expr e, const std::vector<sym::Expr>& operands) {
  switch (e.kind()) {
    case sym::Kind::Constant:
    case sym::Kind::Symbol:
      return e;
    case sym::Kind::Add:
      return sym::sum(operands);
    case sym::Kind::Mul:
      return sym::product(operands);
    case sym::Kind::FloorDiv:
      return sym::floor_div(operands[0], operands[1]);
    case sym::Kind::Mod:
      return sym::mod(operands[0], operands[1]);
    case sym::Kind::Min:
    case sym::Kind::Max: {
      sym::Expr result = operands[0];
      for (size_t i = 1; i < operands.size(); ++i) result = e.kind() == sym::Kind::Min ? sym::min(result, operands[i]) : sym::max(result, operands[i]);
      return result;
    }
  }
  return e;
}

void add_expanded_terms(sym::Expr e, std::vector<sym::Expr>& out) {
  if (e.kind() == sym::Kind::Add) {
    for (sym::Expr operand : e.operands()) add_expanded_terms(operand, out);
  } else if (e.kind() == sym::Kind::Mul) {
    std::vector<sym::Expr> products{1};
    for (sym::Expr factor : e.operands()) {
      std::vector<sym::Expr> terms, next;
      add_expanded_terms(factor, terms);
      for (sym::Expr a : products)
        for (sym::Expr b : terms) next.push_back(a * b);
      products = std::move(next);
    }
    out.insert(out.end(), products.begin(), products.end());
  } else {
    out.push_back(e);
  }
}

std::vector<sym::Expr> factors_of(sym::Expr monomial) {
  if (monomial.kind() != sym::Kind::Mul) return {monomial};
  auto operands = monomial.operands();
  return {operands.begin(), operands.end()};
}

// Division of one product by another; every factor of the divisor must be there.
std::optional<sym::Expr> quotient_of_monomials(sym::Expr e, sym::Expr divisor) {
  int64_t coefficient = 1, divisor_coefficient = 1;
  std::vector<sym::Expr> factors;
  for (sym::Expr f : factors_of(e)) {
    if (f.is_constant())
      coefficient = f.constant();
    else
      factors.push_back(f);
  }
  for (sym::Expr f : factors_of(divisor)) {
    if (f.is_constant()) {
      divisor_coefficient = f.constant();
      continue;
    }
    auto found = std::find(factors.begin(), factors.end(), f);
    if (found == factors.end()) return std::nullopt;
    factors.erase(found);
  }
  if (divisor_coefficient == 0 || coefficient % divisor_coefficient != 0) return std::nullopt;
  factors.push_back(coefficient / divisor_coefficient);
  return sym::product(factors);
}

}  // namespace

sym::Expr replace(sym::Expr e, const ExprMap& replacements) {
  if (e.is_constant()) return e;
  if (e.is_symbol()) {
    auto found = replacements.find(e);
    return found == replacements.end() ? e : found->second;
  }
  bool touched = std::any_of(e.free_symbols().begin(), e.free_symbols().end(), [&](sym::Expr s) { return replacements.contains(s); });
  if (!touched) return e;
  std::vector<sym::Expr> operands;
  for (sym::Expr operand : e.operands()) operands.push_back(replace(operand, replacements));
  return rebuild(e, operands);
}

bool has_division(sym::Expr e) {
  if (e.is_constant() || e.is_symbol()) return false;
  if (e.kind() == sym::Kind::FloorDiv || e.kind() == sym::Kind::Mod) return true;
  auto operands = e.operands();
  return std::any_of(operands.begin(), operands.end(), has_division);
}

sym::Expr expand(sym::Expr e) {
  if (e.kind() != sym::Kind::Add && e.kind() != sym::Kind::Mul) return e;
  std::vector<sym::Expr> terms;
  add_expanded_terms(e, terms);
  return sym::sum(terms);
}

std::optional<sym::Expr> exact_quotient(sym::Expr e, sym::Expr divisor) {
  if (divisor.is_constant(0)) return std::nullopt;
  if (divisor.is_constant(1)) return e;
  if (e == divisor) return sym::Expr(1);
  if (e.is_constant(0)) return sym::Expr(0);
  if (auto whole = quotient_of_monomials(e, divisor)) return whole;
  sym::Expr dividend = expand(e), expanded = expand(divisor);
  if (expanded.kind() == sym::Kind::Add) {
    // Try the ratio of two terms as the quotient; enough for s*(n + 1) by (n + 1).
    std::vector<sym::Expr> terms;
    add_expanded_terms(dividend, terms);
    for (sym::Expr term : terms) {
      auto ratio = quotient_of_monomials(term, expanded.operands().front());
      if (ratio && expand(*ratio * divisor) == dividend) return ratio;
    }
    return std::nullopt;
  }
  if (dividend.kind() != sym::Kind::Add) return quotient_of_monomials(dividend, expanded);
  std::vector<sym::Expr> terms;
  for (sym::Expr term : dividend.operands()) {
    auto quotient = quotient_of_monomials(term, expanded);
    if (!quotient) return std::nullopt;
    terms.push_back(*quotient);
  }
  return sym::sum(terms);
}

Space::Space(const Region& region, const sym::Assumptions& assumptions) : assumptions_(&assumptions) {
  for (const Var& var : region.vars) add(sym::Expr::symbol(var.name), var.extent);
}

const sym::Expr* Space::extent_of(sym::Expr var) const {
  auto found = extents_.find(var);
  return found == extents_.end() ? nullptr : &found->second;
}

bool Space::equal(sym::Expr a, sym::Expr b) const { return a == b || sym::prove_equal(a, b, *assumptions_); }

bool Space::is_index(sym::Expr e) const {
  for (sym::Expr symbol : e.free_symbols())
    if (extents_.contains(symbol) || statement_of_symbol(symbol.name()).valid()) return true;
  return false;
}

Space::Linear Space::linear(sym::Expr e) const {
  std::vector<sym::Expr> monomials, rest;
  add_expanded_terms(e, monomials);
  std::map<sym::Expr, std::vector<sym::Expr>, sym::Less> coefficients;
  for (sym::Expr monomial : monomials) {
    if (!is_index(monomial)) {
      rest.push_back(monomial);
      continue;
    }
    std::vector<sym::Expr> atom, coefficient;
    for (sym::Expr factor : factors_of(monomial)) (is_index(factor) ? atom : coefficient).push_back(factor);
    coefficients[sym::product(atom)].push_back(sym::product(coefficient));
  }
  Linear result;
  result.rest = sym::sum(rest);
  for (const auto& [atom, parts] : coefficients)
    if (sym::Expr total = sym::sum(parts); !total.is_constant(0)) result.terms.push_back({atom, total});
  return result;
}

std::optional<sym::Expr> Space::extreme_of_atom(sym::Expr atom, bool upper) const {
  if (const sym::Expr* extent = extent_of(atom)) return upper ? *extent - 1 : sym::Expr(0);
  if (atom.kind() == sym::Kind::Mod && sym::bounds(atom.operands()[1], *assumptions_).low >= 1 && !is_index(atom.operands()[1]))
    return upper ? atom.operands()[1] - 1 : sym::Expr(0);
  if (atom.kind() == sym::Kind::FloorDiv && sym::bounds(atom.operands()[1], *assumptions_).low >= 1) {
    auto numerator = extreme(atom.operands()[0], upper);
    if (numerator) return sym::floor_div(*numerator, atom.operands()[1]);
  }
  return std::nullopt;
}

std::optional<sym::Expr> Space::extreme(sym::Expr e, bool upper) const {
  Linear form = linear(e);
  sym::Expr total = form.rest;
  for (const Term& term : form.terms) {
    sym::Interval sign = sym::bounds(term.coefficient, *assumptions_);
    if (sign.low < 0 && sign.high > 0) return std::nullopt;
    auto value = extreme_of_atom(term.atom, (sign.low >= 0) == upper);
    if (!value) return std::nullopt;
    total = total + term.coefficient * *value;
  }
  return expand(total);
}

bool Space::in_range(sym::Expr e, sym::Expr bound) const {
  auto low = extreme(e, false);
  if (!low || sym::bounds(*low, *assumptions_).low < 0) return false;
  auto high = extreme(e, true);
  return high && sym::bounds(expand(bound - *high), *assumptions_).low >= 1;
}

bool Space::at_least(sym::Expr a, sym::Expr b) const {
  auto low = extreme(a - b, false);
  return low && sym::bounds(*low, *assumptions_).low >= 0;
}

double Space::magnitude(sym::Expr e) const {
  if (e.is_constant()) return std::abs(static_cast<double>(e.constant()));
  if (const sym::Expr* extent = extent_of(e)) return magnitude(*extent);
  if (e.kind() == sym::Kind::FloorDiv) return magnitude(e.operands()[0]);
  if (e.kind() == sym::Kind::Mod) return magnitude(e.operands()[1]);
  double total = 0;
  if (e.kind() == sym::Kind::Add) {
    for (sym::Expr term : e.operands()) total += magnitude(term);
    return total;
  }
  if (e.kind() != sym::Kind::Mul) {
    const sym::Interval range = sym::bounds(e, *assumptions_);
    const sym::Interval unknown;
    if (range.low == unknown.low || range.high == unknown.high) return most_positions;
    return std::max(std::abs(static_cast<double>(range.low)), std::abs(static_cast<double>(range.high)));
  }
  double numbers = 1, positions = 1;
  std::vector<sym::Expr> seen;
  for (sym::Expr factor : e.operands()) {
    const bool counts = factor.kind() == sym::Kind::Symbol && std::ranges::find(seen, factor) == seen.end();
    (counts ? positions : numbers) *= magnitude(factor);
    seen.push_back(factor);
  }
  return numbers * std::min(positions, most_positions);
}

bool Space::fits_i64(sym::Expr e) const { return magnitude(e) < 0x1p62; }

std::optional<sym::Expr> Space::apply(ScalarOp op, sym::Expr a, sym::Expr b) const {
  if (!fits_i64(a) || !fits_i64(b)) return std::nullopt;
  std::optional<sym::Expr> value;
  try {
    if (op == ScalarOp::Add) value = a + b;
    if (op == ScalarOp::Sub) value = a - b;
    if (op == ScalarOp::Mul) value = a * b;
  } catch (const Unsupported&) {
    return std::nullopt;  // a coefficient overflows
  }
  return value && fits_i64(*value) ? value : std::nullopt;
}

std::optional<bool> Space::decide(ScalarOp op, sym::Expr a, sym::Expr b) const {
  const auto decided = [](bool yes, bool no) { return yes || no ? std::optional(yes) : std::nullopt; };
  const bool equals = op == ScalarOp::Eq || op == ScalarOp::Ne;
  if (equals && equal(a, b)) return op == ScalarOp::Eq;
  if (!fits_i64(a) || !fits_i64(b)) return std::nullopt;
  if (equals) return at_least(a - 1, b) || at_least(b - 1, a) ? std::optional(op == ScalarOp::Ne) : std::nullopt;
  if (op == ScalarOp::Ge) return decided(at_least(a, b), at_least(b - 1, a));
  if (op == ScalarOp::Lt) return decided(at_least(b - 1, a), at_least(a, b));
  if (op == ScalarOp::Gt) return decided(at_least(a - 1, b), at_least(b, a));
  if (op == ScalarOp::Le) return decided(at_least(b, a), at_least(a - 1, b));
  return std::nullopt;
}

void Space::split_multiples(sym::Expr e, sym::Expr divisor, sym::Expr* quotient, sym::Expr* remainder) const {
  Linear form = linear(e);
  std::vector<sym::Expr> multiples, others;
  for (const Term& term : form.terms) {
    if (auto q = exact_quotient(term.coefficient, divisor))
      multiples.push_back(*q * term.atom);
    else
      others.push_back(term.coefficient * term.atom);
  }
  if (form.rest.is_constant() && divisor.is_constant() && divisor.constant() > 0) {
    multiples.push_back(sym::floor_div(form.rest, divisor));
    others.push_back(sym::mod(form.rest, divisor));
  } else if (auto q = exact_quotient(form.rest, divisor)) {
    multiples.push_back(*q);
  } else {
    others.push_back(form.rest);
  }
  *quotient = sym::sum(multiples);
  *remainder = sym::sum(others);
}

sym::Expr Space::divide(sym::Expr e, sym::Expr divisor, bool remainder) const {
  sym::Expr whole, part;
  split_multiples(e, divisor, &whole, &part);
  if (in_range(part, divisor)) return remainder ? part : whole;
  // g*m + t with t < g and g dividing the divisor: only m takes part in the division.
  for (const Term& term : linear(part).terms) {
    sym::Expr g = term.coefficient, m, t;
    auto smaller = exact_quotient(divisor, g);
    if (g.is_constant(1) || !smaller || sym::bounds(g, *assumptions_).low < 1) continue;
    split_multiples(part, g, &m, &t);
    if (!in_range(t, g)) continue;
    return remainder ? g * divide(m, *smaller, true) + t : whole + divide(m, *smaller, false);
  }
  if (remainder && part.kind() == sym::Kind::Mod && exact_quotient(part.operands()[1], divisor)) return divide(part.operands()[0], divisor, true);
  if (!remainder && part.kind() == sym::Kind::FloorDiv && sym::bounds(part.operands()[1], *assumptions_).low >= 1)
    return whole + sym::floor_div(part.operands()[0], part.operands()[1] * divisor);
  return remainder ? sym::mod(part, divisor) : whole + sym::floor_div(part, divisor);
}

// c*k*floordiv(e, k) + c*mod(e, k) -> c*e
sym::Expr Space::recombine(sym::Expr e) const {
  const Linear form = linear(e);
  for (const Term& term : form.terms) {
    if (term.atom.kind() != sym::Kind::Mod) continue;
    sym::Expr value = term.atom.operands()[0], divisor = term.atom.operands()[1];
    sym::Expr quotient = sym::floor_div(value, divisor);
    for (const Term& other : form.terms) {
      if (other.atom != quotient || expand(other.coefficient - term.coefficient * divisor) != sym::Expr(0)) continue;
      return recombine(expand(e - term.coefficient * term.atom - other.coefficient * other.atom + term.coefficient * value));
    }
  }
  return e;
}

sym::Expr Space::simplify(sym::Expr e) const {
  if (!has_division(e)) return e;
  std::vector<sym::Expr> operands;
  for (sym::Expr operand : e.operands()) operands.push_back(simplify(operand));
  if (e.kind() == sym::Kind::Add) return recombine(sym::sum(operands));
  bool divides = e.kind() == sym::Kind::FloorDiv || e.kind() == sym::Kind::Mod;
  if (!divides || !is_index(operands[0]) || sym::bounds(operands[1], *assumptions_).low < 0) return rebuild(e, operands);
  return divide(operands[0], operands[1], e.kind() == sym::Kind::Mod);
}

std::optional<std::vector<Digit>> Space::mixed_radix(sym::Expr e, sym::Expr size) const {
  if (const sym::Expr* extent = extent_of(e)) {
    if (!equal(*extent, size)) return std::nullopt;
    return std::vector<Digit>{{e, 1, *extent}};
  }
  Linear form = linear(e);
  if (!form.rest.is_constant(0)) return std::nullopt;
  std::vector<Digit> digits;
  sym::Expr weight = 1;
  while (!form.terms.empty()) {
    auto next = std::find_if(form.terms.begin(), form.terms.end(),
                             [&](const Term& term) { return extent_of(term.atom) && equal(expand(term.coefficient), expand(weight)); });
    if (next == form.terms.end()) return std::nullopt;
    digits.push_back({next->atom, next->coefficient, *extent_of(next->atom)});
    weight = weight * digits.back().extent;
    form.terms.erase(next);
  }
  if (!equal(expand(weight), expand(size))) return std::nullopt;
  std::reverse(digits.begin(), digits.end());
  return digits;
}

bool Space::is_bijection(const std::vector<sym::Expr>& coords, const std::vector<sym::Expr>& sizes) const {
  std::vector<sym::Expr> used;
  for (size_t d = 0; d < coords.size(); ++d) {
    auto digits = mixed_radix(coords[d], sizes[d]);
    if (!digits) return false;
    for (const Digit& digit : *digits) {
      if (std::find(used.begin(), used.end(), digit.var) != used.end()) return false;
      used.push_back(digit.var);
    }
  }
  return true;
}

void Space::solve(const std::vector<Digit>& digits, sym::Expr target, ExprMap& solution) const {
  for (size_t i = 0; i < digits.size(); ++i) {
    if (digits[i].weight.is_constant(0) || digits[i].extent.is_constant(0)) {
      solution[digits[i].var] = 0;  // nothing runs
      continue;
    }
    sym::Expr value = digits[i].weight.is_constant(1) ? target : sym::floor_div(target, digits[i].weight);
    if (i > 0) value = sym::mod(value, digits[i].extent);
    solution[digits[i].var] = simplify(value);
  }
}

}  // namespace cxxinductor::loops
