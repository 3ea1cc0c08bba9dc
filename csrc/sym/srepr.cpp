// parse_srepr: sympy.srepr text of integer expressions, torch's own functions included. Untrusted text.
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "support/error.h"
#include "support/text_cursor.h"
#include "sym/expr.h"
#include "sym/simplify.h"

namespace cxxinductor::sym {
namespace {

// numerator / divisor: sympy writes sizes with exact fractions that a rounding function makes integers again.
struct Fraction {
  Expr numerator;
  Expr divisor = Expr(1);
  bool whole() const { return divisor.is_constant(1); }
};

using Operands = std::vector<Fraction>;

class Reader {
 public:
  explicit Reader(TextCursor& cursor) : cursor_(cursor) {}

  Fraction read() {
    TextCursor::Nested nested(cursor_);
    const std::string name = cursor_.identifier("a sympy function");
    cursor_.expect("(");
    if (name == "Symbol" || name == "Dummy") return symbol();
    if (name == "Integer") return {integer_and_close()};
    if (name == "Rational") return rational();
    if (name == "Float") throw_unsupported("a floating-point number in a size expression");
    Operands operands{read()};
    while (cursor_.accept(",")) {
      if (cursor_.looking_at("evaluate"))
        cursor_.balanced_until(",)");
      else
        operands.push_back(read());
    }
    cursor_.expect(")");
    return apply(name, operands);
  }

 private:
  Fraction symbol() {
    if (!cursor_.accept("'")) cursor_.fail("a quoted name");
    const std::string name = cursor_.identifier("a symbol's name");
    if (name.find(':') != std::string::npos) cursor_.fail("a symbol's name");
    cursor_.expect("'");
    while (cursor_.accept(",")) assumption(name);
    cursor_.expect(")");
    return {Expr::symbol(name)};
  }

  // positive=True and nonnegative=True make truncation equal to floor; the other assumptions are not used.
  void assumption(const std::string& symbol) {
    const std::string property = cursor_.identifier("an assumption");
    cursor_.expect("=");
    const std::string value = std::string(cursor_.balanced_until(",)"));
    if (value != "True") return;
    if (property == "positive") assumptions_.set_range(symbol, {1, std::numeric_limits<int64_t>::max()});
    if (property == "nonnegative" && assumptions_.range(symbol).low < 0) assumptions_.set_range(symbol, {0, std::numeric_limits<int64_t>::max()});
  }

  int64_t integer_and_close() {
    const int64_t value = cursor_.integer("an integer");
    cursor_.expect(")");
    return value;
  }

  Fraction rational() {
    const int64_t numerator = cursor_.integer("an integer");
    cursor_.expect(",");
    const int64_t denominator = integer_and_close();
    if (denominator <= 0) cursor_.fail("a positive denominator before this");
    return {numerator, denominator};
  }

  static Expr whole(const Fraction& f) {
    if (!f.whole()) throw_unsupported("a fraction in a size expression: ({}) / ({})", to_string(f.numerator), to_string(f.divisor));
    return f.numerator;
  }

  static void expect_arity(const std::string& name, const Operands& p, size_t count) {
    if (p.size() != count) throw_user_error("sympy's {} takes {} arguments, found {}", name, count, p.size());
  }

  Fraction apply(const std::string& name, const Operands& p) const {
    if (name == "Add" || name == "Mul" || name == "Max" || name == "Min") return fold(name, p);
    if (name == "Pow" || name == "PowByNatural") return power(name, p);
    using Binary = std::pair<std::string_view, Expr (*)(Expr, Expr)>;
    static constexpr std::array binary{Binary{"FloorDiv", floor_div}, Binary{"CleanDiv", floor_div}, Binary{"Mod", mod}, Binary{"PythonMod", mod}};
    for (const auto& [known, function] : binary) {
      if (name != known) continue;
      expect_arity(name, p, 2);
      return {function(whole(p[0]), whole(p[1]))};
    }
    if (name == "ModularIndexing") {
      expect_arity(name, p, 3);
      return {mod(floor_div(whole(p[0]), whole(p[1])), whole(p[2]))};
    }
    if (name == "IntTrueDiv") {
      expect_arity(name, p, 2);
      return {whole(p[0]), whole(p[1])};
    }
    return round(name, p);
  }

  Fraction round(const std::string& name, const Operands& p) const {
    const bool floors = name == "FloorToInt" || name == "floor", ceils = name == "CeilToInt" || name == "ceiling";
    if (!floors && !ceils && name != "TruncToInt" && name != "Identity" && name != "Abs") throw_unsupported("sympy's function {} in a size expression", name);
    expect_arity(name, p, 1);
    if (name == "Identity") return p[0];
    if (name == "Abs") return {max(whole(p[0]), -whole(p[0]))};
    if (ceils) return {ceil_div(p[0].numerator, p[0].divisor)};
    if (!floors && !p[0].whole() && (bounds(p[0].numerator, assumptions_).low < 0 || bounds(p[0].divisor, assumptions_).low <= 0))
      throw_unsupported("TruncToInt of ({}) / ({}), which may be negative", to_string(p[0].numerator), to_string(p[0].divisor));
    return {floor_div(p[0].numerator, p[0].divisor)};
  }

  static Fraction fold(const std::string& name, const Operands& p) {
    Fraction out = p[0];
    for (const Fraction& next : std::span(p).subspan(1)) {
      if (name == "Add")
        out = {out.numerator * next.divisor + next.numerator * out.divisor, out.divisor * next.divisor};
      else if (name == "Mul")
        out = {out.numerator * next.numerator, out.divisor * next.divisor};
      else
        out = {name == "Max" ? max(whole(out), whole(next)) : min(whole(out), whole(next))};
    }
    return reduced(out);
  }

  // Fractions that are integers after all: 2 * (1/2), 6 * (s/3).
  static Fraction reduced(const Fraction& f) {
    if (f.divisor.is_constant() && f.divisor.constant() > 1 && mod(f.numerator, f.divisor).is_constant(0)) return {floor_div(f.numerator, f.divisor)};
    return f;
  }

  static Fraction power(const std::string& name, const Operands& p) {
    expect_arity(name, p, 2);
    constexpr int64_t largest_exponent = 16;
    const Expr exponent = whole(p[1]);
    if (!exponent.is_constant() || exponent.constant() < -1 || exponent.constant() > largest_exponent)
      throw_unsupported("the exponent {} in a size expression", to_string(exponent));
    if (exponent.is_constant(-1)) {
      if (p[0].numerator.is_constant(0)) throw_user_error("division by zero in a size expression");
      return {p[0].divisor, p[0].numerator};
    }
    Fraction value{Expr(1)};
    for (int64_t i = 0; i < exponent.constant(); ++i) value = {value.numerator * p[0].numerator, value.divisor * p[0].divisor};
    return value;
  }

  TextCursor& cursor_;
  Assumptions assumptions_;  // of the symbols
};

}  // namespace

Expr parse_srepr(std::string_view text) {
  TextCursor cursor(text);
  const Fraction parsed = Reader(cursor).read();
  if (!cursor.at_end()) cursor.fail("the end of the expression");
  if (!parsed.whole()) throw_unsupported("a fraction as a size: {}", text);
  return parsed.numerator;
}

}  // namespace cxxinductor::sym
