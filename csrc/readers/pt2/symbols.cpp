#include "readers/pt2/symbols.h"

#include <limits>

#include "ir/text_parts.h"
#include "support/text_cursor.h"

namespace cxxinductor::readers {
namespace {

constexpr size_t max_text = 16 * 1024;  // characters of an expression; normal forms take the square

std::string_view expression_text(const Field& expression) {
  const Field text = expression.at("expr_str");
  text.require(text.text().size() <= max_text, "a shorter expression");
  return text.text();
}

// 1 where e >= 1, 0 where e <= 0.
sym::Expr is_positive(sym::Expr e) { return sym::max(0, sym::min(1, e)); }
sym::Expr negation(sym::Expr truth) { return sym::Expr(1) - truth; }

// Reads "StrictLessThan(a, b)", with integers a and b, "And(p, q)", "Not(p)", "true".
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

sym::Expr Symbols::integer(const Field& sym_int) {
  const auto [kind, value] = sym_int.alternative();
  if (kind == "as_int") return value.integer();
  sym_int.require(kind == "as_expr", "as_int or as_expr");
  auto [found, fresh] = parsed_.try_emplace(std::string(expression_text(value)));
  if (fresh) found->second = value.guarded([&] { return sym::parse_srepr(found->first); });
  return found->second;
}

sym::Expr Symbols::truth(const Field& sym_bool) {
  const auto [kind, value] = sym_bool.alternative();
  if (kind == "as_bool") return value.boolean() ? 1 : 0;
  sym_bool.require(kind == "as_expr", "as_bool or as_expr");
  TextCursor cursor(expression_text(value));
  return value.guarded([&] {
    const sym::Expr truth = TruthReader(cursor).read();
    if (!cursor.at_end()) cursor.fail("the end of the condition");
    return truth;
  });
}

void read_ranges(const Field& constraints, sym::Assumptions& assumptions) {
  constraints.for_each_member([&](std::string_view symbol, const Field& range) {
    if (!is_symbol_name(symbol)) return;
    const auto low = range.find("min_val"), high = range.find("max_val");
    const sym::Interval interval{low ? low->integer() : std::numeric_limits<int64_t>::min(),
                                 high ? high->integer() : std::numeric_limits<int64_t>::max()};
    range.require(interval.low <= interval.high, "a range whose min_val is not above its max_val");
    if (interval != sym::Interval()) assumptions.set_range(symbol, interval);
  });
}

}  // namespace cxxinductor::readers
