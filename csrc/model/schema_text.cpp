#include "model/schema_text.h"

#include <fmt/format.h>

#include <utility>

#include "ir/text_parts.h"
#include "support/error.h"
#include "support/text_cursor.h"

namespace cxxinductor::model {
namespace {

struct Type {
  bool holds_tensor = false;
  bool is_list = false;
  std::string alias;
  bool written = false;
};

class SchemaParser {
 public:
  explicit SchemaParser(std::string_view text) : cursor_(text) {}

  NamedSchema parse() {
    NamedSchema found;
    found.callee = cursor_.identifier("an op's name");
    if (const size_t dot = found.callee.find('.', found.callee.find("::")); dot != found.callee.npos) {
      found.overload = found.callee.substr(dot + 1);
      found.callee.resize(dot);
    }
    found.schema.planned_form = planned_form(found.callee);
    parse_arguments(found.schema);
    cursor_.expect("->");
    parse_returns(found.schema);
    while (cursor_.accept("{")) {
      const std::string tag = cursor_.identifier("a tag");
      found.schema.nondeterministic_seeded = found.schema.nondeterministic_seeded || tag == "nondeterministic_seeded";
      cursor_.expect("}");
    }
    if (!cursor_.at_end()) cursor_.fail("the end of the schema");
    return found;
  }

 private:
  void parse_arguments(Schema& schema) {
    cursor_.expect("(");
    bool kwarg_only = false;
    if (cursor_.accept(")")) return;
    do {
      if (cursor_.accept("...")) continue;
      if (cursor_.accept("*")) {
        kwarg_only = true;
        continue;
      }
      const Type type = parse_type();
      SchemaArgument argument;
      argument.name = cursor_.identifier("an argument's name");
      argument.is_tensor = type.holds_tensor;
      argument.is_list = type.is_list;
      argument.kwarg_only = kwarg_only;
      argument.alias = type.alias;
      argument.written = type.written;
      argument.out = kwarg_only && type.written;
      if (cursor_.accept("=")) argument.default_value = parse_default();
      schema.arguments.push_back(std::move(argument));
    } while (cursor_.accept(","));
    cursor_.expect(")");
  }

  void parse_returns(Schema& schema) {
    const auto parse_one = [&] {
      if (cursor_.accept("...")) return;
      const Type type = parse_type();
      if (!cursor_.looking_at(",") && !cursor_.looking_at(")") && !cursor_.looking_at("{") && !cursor_.at_end()) cursor_.identifier("a result's name");
      schema.returns.push_back({.alias = type.alias, .written = type.written, .is_tensor = type.holds_tensor, .is_list = type.is_list});
    };
    if (!cursor_.accept("(")) return parse_one();
    if (cursor_.accept(")")) return;
    do parse_one();
    while (cursor_.accept(","));
    cursor_.expect(")");
  }

  // "Tensor(a!)", "Tensor?[]", "int[2]", "Dict(str, t)", "Tensor(a -> *)"
  Type parse_type() {
    const TextCursor::Nested nested(cursor_);
    Type type;
    const std::string name = cursor_.identifier("a type");
    type.holds_tensor = name == "Tensor";
    const bool has_parts = name == "Dict" || name == "Tuple" || name == "Future" || name == "RRef" || name == "Union";
    if (has_parts && cursor_.accept("(")) {
      do type.holds_tensor = parse_type().holds_tensor || type.holds_tensor;
      while (cursor_.accept(","));
      cursor_.expect(")");
    }
    parse_suffixes(type);
    return type;
  }

  void parse_suffixes(Type& type) {
    while (true) {
      if (cursor_.accept("?")) {
        type.is_list = false;
      } else if (cursor_.looking_at("[")) {
        cursor_.expect("[");
        if (!cursor_.looking_at("]")) cursor_.integer("a list's length");
        cursor_.expect("]");
        type.is_list = true;
      } else if (cursor_.looking_at("(")) {
        parse_alias(type);
      } else {
        return;
      }
    }
  }

  // "(a)", "(a!)", "(a|b)", "(a -> *)", "(a! -> a|*)"
  void parse_alias(Type& type) {
    cursor_.expect("(");
    if (!cursor_.accept("*")) type.alias = cursor_.identifier("an alias set");
    while (cursor_.accept("|"))
      if (!cursor_.accept("*")) cursor_.identifier("an alias set");
    if (cursor_.accept("!")) type.written = true;
    if (cursor_.accept("->")) {
      do
        if (!cursor_.accept("*")) cursor_.identifier("an alias set");
      while (cursor_.accept("|"));
    }
    cursor_.expect(")");
  }

  // None where it is of a kind that no importer asks for.
  std::optional<Arg> parse_default() {
    if (cursor_.accept("None")) return Arg(None{});
    if (cursor_.accept("True")) return Arg(true);
    if (cursor_.accept("False")) return Arg(false);
    if (cursor_.looking_at("\"")) return Arg(cursor_.quoted("a default"));
    if (cursor_.looking_at("[") || cursor_.looking_at("-") || cursor_.looking_at_number()) return parse_arg(cursor_);
    cursor_.identifier("a default");
    return std::nullopt;
  }

  TextCursor cursor_;
};

}  // namespace

NamedSchema parse_schema(std::string_view declaration) { return SchemaParser(declaration).parse(); }

SchemaTable::SchemaTable(std::string_view lines) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    if (line.empty()) continue;
    NamedSchema found = parse_schema(line);
    std::string name = found.overload.empty() ? found.callee : found.callee + "." + found.overload;
    schemas_.emplace(std::move(name), std::move(found.schema));
  }
}

std::optional<Schema> SchemaTable::find(std::string_view callee, std::string_view overload) const {
  std::string name(callee);
  if (!overload.empty() && overload != "default") name += fmt::format(".{}", overload);
  const auto found = schemas_.find(name);
  return found == schemas_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace cxxinductor::model
