// to_string and parse: infix text of expressions.
#include <fmt/format.h>

#include <limits>

#include "support/error.h"
#include "support/text_cursor.h"
#include "sym/expr.h"

namespace cxxinductor::sym {
namespace {

std::string call_text(std::string_view name, std::span<const Expr> operands) {
  std::string text(name);
  text += '(';
  for (size_t i = 0; i < operands.size(); ++i) text += (i ? ", " : "") + to_string(operands[i]);
  return text + ')';
}

std::string factor_text(Expr e) { return e.kind() == Kind::Add ? "(" + to_string(e) + ")" : to_string(e); }

std::string product_text(Expr e) {
  std::string text;
  for (Expr factor : e.operands()) {
    if (factor.is_constant(-1))
      text = "-";
    else
      text += (text.empty() || text == "-" ? "" : "*") + factor_text(factor);
  }
  return text;
}

// Constants last, as people write sums; subtraction where the coefficient is negative.
std::string sum_text(Expr e) {
  std::string text, constant;
  for (Expr term : e.operands()) {
    const std::string item = to_string(term);
    std::string& out = term.is_constant() ? constant : text;
    // The smallest integer has no positive counterpart to subtract.
    const int64_t coefficient = linear_terms(term)[0].coefficient;
    const bool subtract = coefficient < 0 && coefficient != std::numeric_limits<int64_t>::min();
    if (text.empty() && !term.is_constant())
      out += item;
    else
      out += subtract ? " - " + item.substr(1) : " + " + item;
  }
  return text + constant;
}

class Parser {
 public:
  explicit Parser(TextCursor& cursor) : cursor_(cursor) {}

  Expr expression() {
    TextCursor::Nested nested(cursor_);
    Expr value = term();
    while (true) {
      if (cursor_.accept("+"))
        value = value + term();
      else if (cursor_.accept("-"))
        value = value - term();
      else
        return value;
    }
  }

 private:
  Expr term() {
    Expr value = factor();
    while (cursor_.accept("*")) value = value * factor();
    return value;
  }

  Expr factor() {
    TextCursor::Nested nested(cursor_);
    if (cursor_.accept("(")) {
      const Expr value = expression();
      cursor_.expect(")");
      return value;
    }
    if (cursor_.looking_at_number()) return Expr(cursor_.integer("an integer"));
    if (cursor_.accept("-")) return -factor();
    if (cursor_.looking_at("%")) return Expr::symbol("stmt." + cursor_.sigil_name('%', "a statement"));
    const std::string name = cursor_.identifier("a symbol or integer");
    if (!cursor_.looking_at("(")) return Expr::symbol(name);
    return call(name);
  }

  Expr call(const std::string& name) {
    cursor_.expect("(");
    std::vector<Expr> operands{expression()};
    while (cursor_.accept(",")) operands.push_back(expression());
    cursor_.expect(")");
    if (name == "min" || name == "max") {
      Expr value = operands[0];
      for (Expr e : operands) value = name == "min" ? min(value, e) : max(value, e);
      return value;
    }
    if (operands.size() != 2 || (name != "floordiv" && name != "mod")) cursor_.fail("floordiv(a, b), mod(a, b), min(..) or max(..)");
    return name == "floordiv" ? floor_div(operands[0], operands[1]) : mod(operands[0], operands[1]);
  }

  TextCursor& cursor_;
};

}  // namespace

std::string to_string(Expr e) {
  switch (e.kind()) {
    case Kind::Constant:
      return fmt::format("{}", e.constant());
    case Kind::Symbol:
      return std::string(e.name());
    case Kind::Add:
      return sum_text(e);
    case Kind::Mul:
      return product_text(e);
    case Kind::FloorDiv:
      return call_text("floordiv", e.operands());
    case Kind::Mod:
      return call_text("mod", e.operands());
    case Kind::Min:
      return call_text("min", e.operands());
    case Kind::Max:
      return call_text("max", e.operands());
  }
  return {};
}

Expr parse(std::string_view text) {
  TextCursor cursor(text);
  const Expr value = Parser(cursor).expression();
  if (!cursor.at_end()) cursor.fail("the end of the expression");
  return value;
}

}  // namespace cxxinductor::sym
