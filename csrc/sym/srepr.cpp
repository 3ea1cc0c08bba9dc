// parse_srepr: sympy.srepr text of integer expressions, torch's own functions included. Untrusted text.
#include <functional>
#include <map>

#include "support/error.h"
#include "support/text_cursor.h"
#include "sym/expr.h"

namespace cxxinductor::sym {
namespace {

// An integer expression, or a quotient of two that only a rounding function makes an integer again.
struct Parsed {
  Expr value;
  Expr divisor = Expr(1);
  bool exact() const { return divisor.is_constant(1); }
};

class Reader {
 public:
  explicit Reader(TextCursor& cursor) : cursor_(cursor) {}

  Parsed read() {
    TextCursor::Nested nested(cursor_);
    const std::string name = cursor_.identifier("a sympy function");
    cursor_.expect("(");
    if (name == "Symbol") return symbol();
    if (name == "Integer") return integer();
    std::vector<Parsed> operands{read()};
    while (cursor_.accept(",")) {
      if (cursor_.looking_at("evaluate")) {
        cursor_.balanced_until(",)");
        continue;
      }
      operands.push_back(read());
    }
    cursor_.expect(")");
    return apply(name, operands);
  }

 private:
  Parsed symbol() {
    const std::string name = quoted_name();
    cursor_.balanced_until(")");  // assumptions: integer=True, positive=True
    cursor_.expect(")");
    return {Expr::symbol(name)};
  }

  Parsed integer() {
    const int64_t value = cursor_.integer("an integer");
    cursor_.expect(")");
    return {Expr(value)};
  }

  std::string quoted_name() {
    if (!cursor_.accept("'")) cursor_.fail("a quoted name");
    std::string name = cursor_.identifier("a symbol's name");
    cursor_.expect("'");
    return name;
  }

  static Expr whole(const Parsed& parsed) {
    if (!parsed.exact()) throw_unsupported("a fraction in a size expression: {} / {}", to_string(parsed.value), to_string(parsed.divisor));
    return parsed.value;
  }

  static Parsed apply(const std::string& name, const std::vector<Parsed>& p) {
    const auto arity = [&](size_t count) {
      if (p.size() != count) throw_user_error("sympy's {} takes {} arguments, found {}", name, count, p.size());
    };
    const auto fold = [&](Expr (*combine)(Expr, Expr)) {
      Expr value = whole(p[0]);
      for (size_t i = 1; i < p.size(); ++i) value = combine(value, whole(p[i]));
      return Parsed{value};
    };
    if (name == "Add") return fold([](Expr a, Expr b) { return a + b; });
    if (name == "Mul") return fold([](Expr a, Expr b) { return a * b; });
    if (name == "Max") return fold([](Expr a, Expr b) { return max(a, b); });
    if (name == "Min") return fold([](Expr a, Expr b) { return min(a, b); });
    if (name == "FloorDiv" || name == "CleanDiv") {
      arity(2);
      return {floor_div(whole(p[0]), whole(p[1]))};
    }
    if (name == "Mod" || name == "PythonMod") {
      arity(2);
      return {mod(whole(p[0]), whole(p[1]))};
    }
    if (name == "ModularIndexing") {
      arity(3);
      return {mod(floor_div(whole(p[0]), whole(p[1])), whole(p[2]))};
    }
    if (name == "IntTrueDiv") {
      arity(2);
      return {whole(p[0]), whole(p[1])};
    }
    if (name == "FloorToInt" || name == "floor") {
      arity(1);
      return {floor_div(p[0].value, p[0].divisor)};
    }
    if (name == "CeilToInt" || name == "ceiling") {
      arity(1);
      return {ceil_div(p[0].value, p[0].divisor)};
    }
    if (name == "Identity") {
      arity(1);
      return p[0];
    }
    if (name == "Pow" || name == "PowByNatural") return {power(p)};
    throw_unsupported("sympy's function {} in a size expression", name);
  }

  static Expr power(const std::vector<Parsed>& p) {
    if (p.size() != 2 || !whole(p[1]).is_constant() || whole(p[1]).constant() < 0 || whole(p[1]).constant() > 16)
      throw_unsupported("a power with this exponent in a size expression");
    Expr value(1);
    for (int64_t i = 0; i < whole(p[1]).constant(); ++i) value = value * whole(p[0]);
    return value;
  }

  TextCursor& cursor_;
};

}  // namespace

Expr parse_srepr(std::string_view text) {
  TextCursor cursor(text);
  const Parsed parsed = Reader(cursor).read();
  if (!cursor.at_end()) cursor.fail("the end of the expression");
  if (!parsed.exact()) throw_unsupported("a fraction as a size: {}", std::string(text));
  return parsed.value;
}

}  // namespace cxxinductor::sym
