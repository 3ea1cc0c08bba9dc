#include "sym/print_c.h"

#include <fmt/format.h>

#include <limits>

namespace cxxinductor::sym {
namespace {

class Printer {
 public:
  Printer(const Assumptions& assumptions, const CSpelling& spelling) : assumptions_(assumptions), spelling_(spelling) {}

  std::string print(Expr e) const {
    switch (e.kind()) {
      case Kind::Constant:
        // C has no literal for the smallest integer: it would negate one that is too large.
        if (e.constant() == std::numeric_limits<int64_t>::min()) return fmt::format("({}{} - 1)", e.constant() + 1, spelling_.integer_suffix);
        return fmt::format("{}{}", e.constant(), spelling_.integer_suffix);
      case Kind::Symbol:
        return spelling_.symbol ? spelling_.symbol(e.name()) : std::string(e.name());
      case Kind::Add:
        return sum(e);
      case Kind::Mul:
        return product(e);
      case Kind::FloorDiv:
        return quotient(e, "/", "cxxi_floor_div");
      case Kind::Mod:
        return quotient(e, "%", "cxxi_floor_mod");
      case Kind::Min:
        return folded(e, "cxxi_min_int");
      case Kind::Max:
        return folded(e, "cxxi_max_int");
    }
    return {};
  }

 private:
  // Constant last, and a subtraction where a coefficient is negative, as people write it.
  std::string sum(Expr e) const {
    std::string text, constant;
    for (const Term& term : linear_terms(e)) {
      const bool subtract = term.coefficient < 0 && term.coefficient != std::numeric_limits<int64_t>::min() && !text.empty();
      const std::string item = print(Expr(subtract ? -term.coefficient : term.coefficient) * term.monomial);
      if (term.monomial.is_constant())
        constant = item;
      else
        text += (text.empty() ? "" : subtract ? " - " : " + ") + item;
    }
    if (constant.empty()) return "(" + text + ")";
    if (constant[0] == '-') return "(" + text + " - " + constant.substr(1) + ")";
    return "(" + text + " + " + constant + ")";
  }
  std::string product(Expr e) const {
    std::string text;
    for (Expr operand : e.operands()) text += (text.empty() ? "" : " * ") + print(operand);
    return "(" + text + ")";
  }
  std::string quotient(Expr e, std::string_view op, std::string_view function) const {
    const Expr a = e.operands()[0], b = e.operands()[1];
    if (bounds(a, assumptions_).low >= 0 && bounds(b, assumptions_).low > 0) return fmt::format("({} {} {})", print(a), op, print(b));
    return fmt::format("{}({}, {})", function, print(a), print(b));
  }
  std::string folded(Expr e, std::string_view function) const {
    std::string text = print(e.operands()[0]);
    for (Expr operand : e.operands().subspan(1)) text = fmt::format("{}({}, {})", function, text, print(operand));
    return text;
  }

  const Assumptions& assumptions_;
  const CSpelling& spelling_;
};

}  // namespace

std::string to_c(Expr e, const Assumptions& assumptions, const CSpelling& spelling) { return Printer(assumptions, spelling).print(e); }

}  // namespace cxxinductor::sym
