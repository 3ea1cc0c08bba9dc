#include "ir/call_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/text_parts.h"

namespace cxxinductor {
namespace {

// " defines [u0 = result 0 dim 1, u1 = value]", or nothing where a call defines no symbols.
std::string print_definitions(const std::vector<Definition>& definitions) {
  std::vector<std::string> items;
  for (const Definition& definition : definitions)
    items.push_back(definition.result < 0 ? definition.symbol + " = value"
                                          : fmt::format("{} = result {} dim {}", definition.symbol, definition.result, definition.dim));
  return items.empty() ? "" : fmt::format(" defines [{}]", fmt::join(items, ", "));
}

std::vector<Definition> parse_definitions(TextCursor& cursor) {
  std::vector<Definition> definitions;
  if (!cursor.accept("defines")) return definitions;
  cursor.expect("[");
  do {
    if (definitions.size() >= max_text_items) cursor.fail("fewer definitions");
    Definition& definition = definitions.emplace_back();
    definition.symbol = parse_symbol_name(cursor, "a symbol");
    cursor.expect("=");
    if (cursor.accept("value")) continue;
    cursor.expect("result");
    definition.result = parse_int(cursor, "a result's number", 0, max_text_items);
    cursor.expect("dim");
    definition.dim = parse_int(cursor, "a dimension", 0, 2 * max_text_rank);
  } while (cursor.accept(","));
  cursor.expect("]");
  return definitions;
}

}  // namespace

std::string print_call(const Call& call, const std::vector<std::string>& operands) {
  std::string text = fmt::format("extern {}{}", print_callee(call.callee, call.overload), print_call_args(call.args, call.kwargs));
  if (!operands.empty()) text += fmt::format(" with ({})", fmt::join(operands, ", "));
  if (std::any_of(call.alias_of.begin(), call.alias_of.end(), [](int operand) { return operand >= 0; })) text += " alias " + print_int_list(call.alias_of);
  if (!call.mutated_operands.empty()) text += " mutates " + print_integers(call.mutated_operands);
  text += print_definitions(call.defines);
  if (call.planned_out) text += " planned_out";
  return text;
}

Call parse_call(TextCursor& cursor, size_t results, const std::function<void()>& parse_operands) {
  Call call;
  parse_callee(cursor, call.callee, call.overload);
  parse_call_args(cursor, call.args, call.kwargs);
  if (cursor.accept("with")) parse_operands();
  call.alias_of.assign(results, -1);
  if (cursor.accept("alias")) call.alias_of = parse_int_list(cursor, max_text_items);
  if (cursor.accept("mutates"))
    for (int operand : parse_int_list(cursor, max_text_items)) call.mutated_operands.push_back(static_cast<uint32_t>(operand));
  call.defines = parse_definitions(cursor);
  call.planned_out = cursor.accept("planned_out");
  return call;
}

}  // namespace cxxinductor
