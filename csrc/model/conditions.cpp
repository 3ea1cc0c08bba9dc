#include "model/conditions.h"

#include <string>

#include "support/error.h"
#include "support/text_cursor.h"

namespace cxxinductor::model {
namespace {

// 1 where e >= 1, 0 where e <= 0.
sym::Expr is_positive(sym::Expr e) { return sym::max(0, sym::min(1, e)); }
sym::Expr negation(sym::Expr truth) { return sym::Expr(1) - truth; }

class TruthReader {
 public:
  explicit TruthReader(TextCursor& cursor) : cursor_(cursor) {}

  sym::Expr read() {
    TextCursor::Nested nested(cursor_);
    const std::string name = cursor_.identifier("a condition");
    if (name == "true" || name == "false") return name == "true" ? 1 : 0;
    cursor_.expect("(");
    if (name == "Not") {
      const sym::Expr operand = read();
      cursor_.expect(")");
      return negation(operand);
    }
    if (name == "And" || name == "Or") return connective(name == "And");
    const sym::Expr a = side(",");
    cursor_.expect(",");
    const sym::Expr b = side(")");
    cursor_.expect(")");
    return comparison(name, a, b);
  }

 private:
  sym::Expr side(std::string_view stop) { return sym::parse_srepr(cursor_.balanced_until(stop)); }

  sym::Expr connective(bool conjunction) {
    sym::Expr out = read();
    while (cursor_.accept(",")) {
      const sym::Expr next = read();
      out = conjunction ? sym::min(out, next) : sym::max(out, next);
    }
    cursor_.expect(")");
    return out;
  }

  static sym::Expr comparison(const std::string& name, sym::Expr a, sym::Expr b) {
    if (name == "StrictLessThan") return is_positive(b - a);
    if (name == "StrictGreaterThan") return is_positive(a - b);
    if (name == "LessThan") return negation(is_positive(a - b));
    if (name == "GreaterThan") return negation(is_positive(b - a));
    if (name == "Unequality") return is_positive(sym::max(a - b, b - a));
    if (name == "Equality") return negation(is_positive(sym::max(a - b, b - a)));
    throw_unsupported("sympy's {} in a condition", name);
  }

  TextCursor& cursor_;
};

}  // namespace

sym::Expr parse_condition(std::string_view srepr) {
  TextCursor cursor(srepr);
  const sym::Expr truth = TruthReader(cursor).read();
  if (!cursor.at_end()) cursor.fail("the end of the condition");
  return truth;
}

}  // namespace cxxinductor::model
