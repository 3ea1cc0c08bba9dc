#include "ir/text_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "support/error.h"
#include "support/text_error.h"
#include "sym/names.h"

namespace cxxinductor {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads "open item, item close" through `item`.
template <class ParseItem>
void parse_items(TextCursor& cursor, std::string_view open, std::string_view close, size_t limit, ParseItem item) {
  cursor.expect(open);
  if (cursor.accept(close)) return;
  for (size_t count = 0;; ++count) {
    if (count == limit) cursor.fail(fmt::format("at most {} items", limit));
    item();
    if (cursor.accept(close)) return;
    cursor.expect(",");
  }
}

void append_quoted(std::string& out, std::string_view text) {
  const auto has = [text](char c) { return text.find(c) != std::string_view::npos; };
  out += '"';
  if (!has('"') && !has('\\') && !has('\n')) {
    out += text;
  } else {
    for (char c : text) {
      if (c == '"' || c == '\\' || c == '\n') out += '\\';
      out += c == '\n' ? 'n' : c;
    }
  }
  out += '"';
}

}  // namespace

std::string quote(std::string_view text) {
  std::string quoted;
  append_quoted(quoted, text);
  return quoted;
}

std::string print_expr_list(const std::vector<sym::Expr>& list, const SymbolSpelling& spell) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) text += ", ";
    text += spell ? spell(list[i]) : sym::to_string(list[i]);
  }
  text += ']';
  return text;
}

std::string print_int_list(const std::vector<int>& list) { return fmt::format("[{}]", fmt::join(list, ", ")); }

sym::Expr parse_expr(TextCursor& cursor, std::string_view stops, const ExprRewrite& rewrite) {
  TextCursor start = cursor;
  std::string_view text = cursor.balanced_until(stops);
  // Most are sizes, which need no reader of expressions.
  int64_t number = 0;
  if (const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      !rewrite && !text.empty() && is_digit(text[0]) && error == std::errc() && end == text.data() + text.size())
    return sym::Expr(number);
  if (text.size() > 16384) start.fail("an expression of at most 16384 characters");
  std::string message;
  try {
    return sym::parse(rewrite ? rewrite(text) : std::string(text));
  } catch (const TextError& error) {
    message = error.reason();  // its place is one in the expression; `start` has the place in the text
  } catch (const Error& error) {
    message = error.what();
  }
  start.fail(fmt::format("an expression ({})", message));
}

std::vector<sym::Expr> parse_expr_list(TextCursor& cursor, const ExprRewrite& rewrite, size_t limit) {
  std::vector<sym::Expr> list;
  parse_items(cursor, "[", "]", limit, [&] { list.push_back(parse_expr(cursor, ",]", rewrite)); });
  return list;
}

int parse_int(TextCursor& cursor, std::string_view what, int low, int high) {
  TextCursor start = cursor;
  int64_t value = cursor.integer(what);
  if (value < low || value > high) start.fail(fmt::format("{} between {} and {}", what, low, high));
  return static_cast<int>(value);
}

std::vector<int> parse_int_list(TextCursor& cursor, size_t limit) {
  std::vector<int> list;
  parse_items(cursor, "[", "]", limit,
              [&] { list.push_back(parse_int(cursor, "an integer", std::numeric_limits<int>::min(), std::numeric_limits<int>::max())); });
  return list;
}

DType parse_dtype(TextCursor& cursor) {
  TextCursor start = cursor;
  std::optional<DType> dtype = find_dtype(cursor.identifier("a dtype"));
  if (!dtype) start.fail("a dtype");
  return *dtype;
}

bool looking_at_dtype(TextCursor cursor) {
  cursor.skip_blanks();
  if (cursor.at_end() || cursor.looking_at_number()) return false;
  try {
    return find_dtype(cursor.identifier("a dtype")).has_value();
  } catch (const UserError&) {
    return false;
  }
}

Device parse_device(TextCursor& cursor) {
  TextCursor start = cursor;
  std::string name = cursor.identifier("a device");
  if (cursor.accept(":")) name += fmt::format(":{}", parse_int(cursor, "a device's number", 0, 65535));
  std::optional<Device> device = find_device(name);
  if (!device) start.fail("a device");
  return *device;
}

std::string print_typed_scalar(const Scalar& value) { return fmt::format("{}({})", to_string(value.dtype()), to_string(value)); }

Scalar parse_typed_scalar(TextCursor& cursor) {
  TextCursor start = cursor;
  DType dtype = parse_dtype(cursor);
  if (is_opaque(dtype)) start.fail("a dtype that has immediates");
  cursor.expect("(");
  Scalar value = parse_scalar(cursor, dtype);
  cursor.expect(")");
  return value;
}

namespace {

Arg parse_word_arg(TextCursor& cursor) {
  TextCursor start = cursor;
  std::string word = cursor.identifier("an argument");
  if (word == "none") return Arg(None{});
  if (word == "true" || word == "false") return Arg(word == "true");
  if (word == "inf") return Arg(std::numeric_limits<double>::infinity());
  if (word == "nan") return Arg(std::numeric_limits<double>::quiet_NaN());
  if (std::optional<DType> dtype = find_dtype(word)) return Arg(*dtype);
  Arg arg;
  if (word == "expr") {
    cursor.expect("(");
    arg = Arg(parse_expr(cursor, ")"));
  } else if (word == "complex") {
    cursor.expect("(");
    const double re = parse_scalar(cursor, DType::F64).real();
    cursor.expect(",");
    arg = Arg(std::complex<double>(re, parse_scalar(cursor, DType::F64).real()));
  } else if (word == "device") {
    cursor.expect("(");
    arg = Arg(parse_device(cursor));
  } else if (word == "layout" || word == "memory_format" || word == "handle") {
    cursor.expect("(");
    int number = parse_int(cursor, word, word == "handle" ? 0 : -1, std::numeric_limits<int>::max());
    if (word == "layout")
      arg = Arg(LayoutArg{number});
    else if (word == "memory_format")
      arg = Arg(MemoryFormatArg{number});
    else
      arg = Arg(Handle{static_cast<uint32_t>(number)});
  } else {
    start.fail("an argument");
  }
  cursor.expect(")");
  return arg;
}

}  // namespace

Arg parse_arg(TextCursor& cursor, const OperandReader& read_operand) {
  TextCursor::Nested nested(cursor);
  cursor.skip_blanks();
  if (cursor.looking_at("[")) {
    ArgList list;
    parse_items(cursor, "[", "]", max_text_items, [&] { list.push_back(parse_arg(cursor, read_operand)); });
    return Arg(std::move(list));
  }
  if (cursor.looking_at("\"")) return Arg(cursor.quoted("a string"));
  if (read_operand && cursor.looking_at("%")) return Arg(read_operand(cursor));
  if (!read_operand && cursor.accept("$")) return Arg(OperandRef{static_cast<uint32_t>(parse_int(cursor, "an operand index", 0, max_text_items))});
  if (cursor.looking_at_number() || cursor.looking_at("-")) {
    TextCursor ahead = cursor;
    std::string_view number = ahead.balanced_until(",])");
    bool integral = std::all_of(number.begin(), number.end(), [](char c) { return is_digit(c) || c == '-' || c == ' ' || c == '\n'; });
    if (integral) return Arg(cursor.integer("an integer"));
    return Arg(cursor.real("a number"));
  }
  return parse_word_arg(cursor);
}

std::string print_callee(std::string_view callee, std::string_view overload) {
  if (callee.find('.') != callee.npos) return fmt::format("{} overload {}", quote(callee), quote(overload));
  return quote(overload.empty() ? std::string(callee) : fmt::format("{}.{}", callee, overload));
}

void parse_callee(TextCursor& cursor, std::string& callee, std::string& overload) {
  constexpr size_t longest = 500;  // messages name it
  TextCursor start = cursor;
  callee = cursor.quoted("the callee, in quotes");
  if (callee.size() > longest) start.fail(fmt::format("a callee of at most {} characters", longest));
  if (cursor.accept("overload")) {
    overload = cursor.quoted("the overload, in quotes");
  } else if (size_t dot = callee.find('.'); dot != callee.npos) {
    overload = callee.substr(dot + 1);
    callee.resize(dot);
  }
}

std::string print_call_args(const std::vector<Arg>& args, const std::vector<std::pair<std::string, Arg>>& kwargs, const OperandSpelling& spell) {
  const auto text_of = [&](const Arg& arg) { return spell ? to_string(arg, spell) : to_string(arg); };
  std::vector<std::string> items;
  for (const Arg& arg : args) items.push_back(text_of(arg));
  for (const auto& [key, arg] : kwargs) items.push_back(fmt::format("{} = {}", key, text_of(arg)));
  return fmt::format("({})", fmt::join(items, ", "));
}

void parse_call_args(TextCursor& cursor, std::vector<Arg>& args, std::vector<std::pair<std::string, Arg>>& kwargs, const OperandReader& read_operand) {
  parse_items(cursor, "(", ")", max_text_items, [&] {
    TextCursor ahead = cursor;
    bool word = !ahead.looking_at_number() && !ahead.looking_at("-") && !ahead.looking_at("\"") && !ahead.looking_at("[") && !ahead.looking_at("$") &&
                !ahead.looking_at("%");
    if (word) ahead.identifier("an argument");
    bool keyed = word && ahead.looking_at("=");
    if (!keyed) {
      if (!kwargs.empty()) cursor.fail("key = argument");
      args.push_back(parse_arg(cursor, read_operand));
      return;
    }
    std::string key = cursor.identifier("an argument's name");
    cursor.expect("=");
    kwargs.emplace_back(std::move(key), parse_arg(cursor, read_operand));
  });
}

std::string print_where(const sym::Assumptions& assumptions) {
  constexpr sym::Interval unbounded;
  std::vector<std::string> clauses;
  for (const auto& [symbol, range] : assumptions.ranges()) {
    std::string clause = symbol;
    if (range.low != unbounded.low) clause = fmt::format("{} <= {}", range.low, clause);
    if (range.high != unbounded.high) clause += fmt::format(" <= {}", range.high);
    if (range != unbounded) clauses.push_back(std::move(clause));
  }
  for (const auto& [symbol, divisor] : assumptions.divisors())
    if (divisor != 1) clauses.push_back(fmt::format("{} | {}", divisor, symbol));
  return clauses.empty() ? "" : fmt::format(" where {}", fmt::join(clauses, ", "));
}

void parse_where(TextCursor& cursor, sym::Assumptions& assumptions) {
  if (!cursor.accept("where")) return;
  do {
    cursor.skip_blanks();
    TextCursor start = cursor;
    sym::Interval range;
    if (cursor.looking_at_number()) {
      int64_t number = cursor.integer("a bound or divisor");
      if (cursor.accept("|")) {
        if (number < 1) start.fail("a positive divisor");
        assumptions.set_divisor(parse_symbol_name(cursor, "a symbol"), number);
        continue;
      }
      cursor.expect("<=");
      range.low = number;
    }
    std::string symbol = parse_symbol_name(cursor, "a symbol");
    if (cursor.accept("<=")) range.high = cursor.integer("an upper bound");
    if (range.low > range.high) start.fail("a range that is not empty");
    assumptions.set_range(symbol, range);
  } while (cursor.accept(","));
}

namespace {

std::string text_of(const Origin& origin) {
  std::string text;
  append_quoted(text, origin.file);
  text += ':';
  text += fmt::format_int(origin.line).c_str();
  text += ' ';
  append_quoted(text, origin.module);
  text += ' ';
  append_quoted(text, origin.call);
  return text;
}

}  // namespace

std::string print_origin(const OriginTable& origins, OriginId id) {
  if (!id.valid() || !origins.contains(id)) return "";
  return " from " + text_of(origins[id]);
}

OriginId OriginReader::parse(TextCursor& cursor) {
  if (!cursor.accept("from")) return {};
  Origin origin;
  origin.file = cursor.quoted("a file name");
  cursor.expect(":");
  origin.line = parse_int(cursor, "a line", std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
  origin.module = cursor.quoted("a module path");
  origin.call = cursor.quoted("a call");
  auto [entry, is_new] = known_.try_emplace(text_of(origin));
  if (is_new) entry->second = origins_.push_back(std::move(origin));
  return entry->second;
}

bool is_text_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '.'; });
}

bool is_symbol_name(std::string_view name) { return sym::may_name_symbol(name) && !name.starts_with("stmt."); }

std::string parse_symbol_name(TextCursor& cursor, std::string_view what) {
  TextCursor start = cursor;
  std::string name = cursor.identifier(what);
  if (!is_symbol_name(name)) start.fail(what);
  return name;
}

void parse_guarded(TextCursor& cursor, const std::function<void()>& parse_all) {
  std::string message;
  try {
    return parse_all();
  } catch (const TextError&) {
    throw;
  } catch (const UserError& error) {
    message = error.what();
  } catch (const Unsupported& error) {
    message = error.what();
  }
  throw_user_error("line {}: {}", cursor.line(), message);
}

void require_valid(std::string_view what, const std::vector<std::string>& messages) {
  constexpr size_t most = 4, longest = 400;  // texts may be anybody's: a message is no file
  if (messages.empty()) return;
  std::string lines;
  for (size_t i = 0; i < std::min(most, messages.size()); ++i) lines += "\n  " + messages[i].substr(0, longest) + (messages[i].size() > longest ? "..." : "");
  if (messages.size() > most) lines += fmt::format("\n  and {} more", messages.size() - most);
  throw_user_error("the text is not a valid {}:{}", what, lines);
}

}  // namespace cxxinductor
