#include "sym/algebra.h"

#include <ginac/ginac.h>

#include <map>

#include "support/fork_locks.h"

namespace cxxinductor::sym {
namespace {

// Our expressions as GiNaC's and back, within one locked call.
class Translation {
 public:
  GiNaC::ex to_ginac(Expr e) {
    switch (e.kind()) {
      case Kind::Constant:
        return GiNaC::numeric(std::to_string(e.constant()).c_str());
      case Kind::Add: {
        GiNaC::ex total = 0;
        for (Expr operand : e.operands()) total += to_ginac(operand);
        return total;
      }
      case Kind::Mul: {
        GiNaC::ex total = 1;
        for (Expr operand : e.operands()) total *= to_ginac(operand);
        return total;
      }
      case Kind::Symbol:
      case Kind::FloorDiv:
      case Kind::Mod:
      case Kind::Min:
      case Kind::Max:
        return atom(e);
    }
    return 0;
  }

  GiNaC::symbol atom(Expr e) {
    auto found = atoms_.find(e);
    if (found == atoms_.end()) found = atoms_.emplace(e, GiNaC::symbol("a" + std::to_string(atoms_.size()))).first;
    return found->second;
  }

  // nullopt for what int64 cannot represent (fractions, huge constants).
  std::optional<Expr> from_ginac(const GiNaC::ex& e) {
    if (GiNaC::is_a<GiNaC::numeric>(e)) {
      const auto& number = GiNaC::ex_to<GiNaC::numeric>(e);
      if (!number.is_integer() || GiNaC::abs(number) > GiNaC::numeric("4611686018427387904")) return std::nullopt;
      return Expr(static_cast<int64_t>(number.to_long()));
    }
    if (GiNaC::is_a<GiNaC::symbol>(e)) {
      for (const auto& [expr, symbol] : atoms_) {
        if (symbol.is_equal(GiNaC::ex_to<GiNaC::symbol>(e))) return expr;
      }
      return std::nullopt;
    }
    const bool is_sum = GiNaC::is_a<GiNaC::add>(e);
    if (is_sum || GiNaC::is_a<GiNaC::mul>(e)) {
      Expr total = is_sum ? Expr(0) : Expr(1);
      for (size_t i = 0; i < e.nops(); ++i) {
        const auto operand = from_ginac(e.op(i));
        if (!operand) return std::nullopt;
        total = is_sum ? total + *operand : total * *operand;
      }
      return total;
    }
    if (GiNaC::is_a<GiNaC::power>(e) && e.op(1).info(GiNaC::info_flags::posint)) {
      const auto base = from_ginac(e.op(0));
      if (!base) return std::nullopt;
      Expr total(1);
      for (long i = 0; i < GiNaC::ex_to<GiNaC::numeric>(e.op(1)).to_long(); ++i) total = total * *base;
      return total;
    }
    return std::nullopt;
  }

 private:
  std::map<Expr, GiNaC::symbol, Less> atoms_;
};

}  // namespace

bool equal_as_polynomials(Expr a, Expr b) {
  const ForkGuard guard(ForkLock::Algebra);
  Translation translation;
  return (translation.to_ginac(a) - translation.to_ginac(b)).expand().is_zero();
}

std::optional<Expr> solve_linear(Expr lhs, Expr rhs, Expr symbol) {
  const ForkGuard guard(ForkLock::Algebra);
  Translation translation;
  const GiNaC::symbol unknown = translation.atom(symbol);
  const GiNaC::ex equation = (translation.to_ginac(lhs) - translation.to_ginac(rhs)).expand();
  if (equation.degree(unknown) != 1) return std::nullopt;
  const GiNaC::ex coefficient = equation.coeff(unknown, 1);
  if (coefficient.is_zero()) return std::nullopt;
  const auto solution = translation.from_ginac((-equation.coeff(unknown, 0) / coefficient).normal().expand());
  // The symbol may hide inside an atom: s + s // 2 == 5 is not linear.
  if (!solution || solution->depends_on(symbol) || translation.from_ginac(coefficient)->depends_on(symbol)) return std::nullopt;
  return solution;
}

}  // namespace cxxinductor::sym
