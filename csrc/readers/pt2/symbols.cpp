#include "readers/pt2/symbols.h"

#include <limits>

#include "ir/text_parts.h"
#include "model/conditions.h"

namespace cxxinductor::readers {
namespace {

constexpr size_t max_text = 16 * 1024;  // characters of an expression; normal forms take the square

std::string_view expression_text(const Field& expression) {
  const Field text = expression.at("expr_str");
  text.require(text.text().size() <= max_text, "a shorter expression");
  return text.text();
}

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
  return value.guarded([&] { return model::parse_condition(expression_text(value)); });
}

void read_ranges(const Field& constraints, sym::Assumptions& assumptions) {
  constraints.for_each_member([&](std::string_view symbol, const Field& range) {
    if (!is_symbol_name(symbol)) return;
    const auto low = range.find("min_val"), high = range.find("max_val");
    const sym::Interval interval{low ? low->integer() : std::numeric_limits<int64_t>::min(), high ? high->integer() : std::numeric_limits<int64_t>::max()};
    range.require(interval.low <= interval.high, "a range whose min_val is not above its max_val");
    if (interval != sym::Interval()) assumptions.set_range(symbol, interval);
  });
}

}  // namespace cxxinductor::readers
