#include "ir/graph/attribute_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "ir/graph/node_traits.h"
#include "ir/text_parts.h"

namespace cxxinductor::graph {
namespace {

// ---- Values --------------------------------------------------------------------------------------------------------------------------

std::string text_of(int dim) { return fmt::format("{}", dim); }
std::string text_of(const std::vector<int>& dims) { return print_int_list(dims); }
std::string text_of(sym::Expr e) { return sym::to_string(e); }
std::string text_of(const std::vector<sym::Expr>& list) { return print_expr_list(list); }
std::string text_of(const Scalar& scalar) { return print_typed_scalar(scalar); }

// `stops`: what may follow.
void read(TextCursor& cursor, int& dim, std::string_view) { dim = parse_int(cursor, "a dimension", 0, max_text_rank - 1); }
void read(TextCursor& cursor, std::vector<int>& dims, std::string_view) { dims = parse_int_list(cursor); }
void read(TextCursor& cursor, sym::Expr& e, std::string_view stops) { e = parse_expr(cursor, stops); }
void read(TextCursor& cursor, std::vector<sym::Expr>& list, std::string_view) { list = parse_expr_list(cursor); }
void read(TextCursor& cursor, Scalar& scalar, std::string_view) { scalar = parse_typed_scalar(cursor); }

std::string_view name_of(ScalarOp op) { return info(op).name; }
std::string_view name_of(Reduction reduction) { return info(reduction).name; }
using cxxinductor::name_of;
bool find(std::string_view name, Reduction& found) {
  const auto reduction = find_reduction(name);
  if (reduction) found = *reduction;
  return reduction.has_value();
}
bool find(std::string_view name, Combine& found) {
  const auto combine = find_combine(name);
  if (combine) found = *combine;
  return combine.has_value();
}

// ---- Printing: an attribute's text, empty where it is left out -----------------------------------------------------------------------

template <class Kind, class T>
std::string print(const Kind& kind, const Required<Kind, T>& attribute) {
  return fmt::format("{}={}", attribute.name, text_of(kind.*attribute.member));
}
template <class Kind>
std::string print(const Kind& kind, const OptionalList<Kind>& attribute) {
  const auto& list = kind.*attribute.member;
  return list.empty() ? "" : fmt::format("{}={}", attribute.name, text_of(list));
}
template <class Kind>
std::string print(const Kind& kind, const ListPerItem<Kind>& attribute) {
  const auto& list = kind.*attribute.member;
  const bool usual = std::ranges::all_of(list, [&](sym::Expr e) { return e.is_constant(attribute.usual); });
  return usual ? "" : fmt::format("{}={}", attribute.name, text_of(list));
}
template <class Kind, class T>
std::string print(const Kind& kind, const Enumerator<Kind, T>& attribute) {
  const T value = kind.*attribute.member;
  return value == attribute.usual ? "" : std::string(name_of(value));
}
template <class Kind>
std::string print(const Kind& kind, const Flag<Kind>& attribute) {
  return kind.*attribute.member == attribute.value ? std::string(attribute.name) : "";
}

template <class Kind>
std::string print_attributes(const Kind& kind) {
  std::vector<std::string> texts;
  for_each_attribute<Kind>([&](const auto& attribute) {
    if (std::string text = print(kind, attribute); !text.empty()) texts.push_back(std::move(text));
  });
  return texts.empty() ? "" : fmt::format("<{}>", fmt::join(texts, ", "));
}

// ---- Parsing -------------------------------------------------------------------------------------------------------------------------

template <class Kind>
class AttributeParser {
 public:
  explicit AttributeParser(TextCursor& cursor) : cursor_(cursor) {}

  Kind parse() {
    if constexpr (attribute_count < Kind >> 0) {
      size_t left = 0;
      for_each_attribute<Kind>([&](const auto& attribute) { left += always_written(attribute); });
      const bool has_optional = left < attribute_count<Kind>;
      cursor_.expect("<");
      for_each_attribute<Kind>([&](const auto& attribute) {
        if (!always_written(attribute)) return set_usual(attribute);
        parse_required(attribute, --left > 0 ? "," : ",>");
        if (left > 0) cursor_.expect(",");
      });
      while (has_optional && cursor_.accept(",")) parse_optional();
      cursor_.expect(">");
    }
    return std::move(kind_);
  }

 private:
  template <class Attribute>
  void set_usual(const Attribute&) {}  // as a new node has it
  void set_usual(const ListPerItem<Kind>& attribute) { (kind_.*attribute.member).assign((kind_.*attribute.items).size(), attribute.usual); }

  template <class Attribute>
  void parse_required(const Attribute&, std::string_view) {}
  template <class T>
  void parse_required(const Required<Kind, T>& attribute, std::string_view stops) {
    cursor_.expect(attribute.name);
    cursor_.expect("=");
    read(cursor_, kind_.*attribute.member, stops);
  }
  template <class T>
  void parse_required(const Enumerator<Kind, T>& attribute, std::string_view) {
    TextCursor start = cursor_;
    if (!find(cursor_.identifier(attribute.name), kind_.*attribute.member)) start.fail(attribute.name);
  }

  void parse_optional() {
    TextCursor start = cursor_;
    const std::string word = cursor_.identifier(fmt::format("an attribute of {}", NodeTraits<Kind>::keyword));
    bool found = false;
    std::vector<std::string_view> names;
    for_each_attribute<Kind>([&](const auto& attribute) {
      if (always_written(attribute)) return;
      names.push_back(attribute.name);
      found = found || accept(attribute, word);
    });
    if (found) return;
    const std::string_view last = names.back();
    names.pop_back();
    start.fail(names.empty() ? std::string(last) : fmt::format("{} or {}", fmt::join(names, ", "), last));
  }
  template <class Attribute>
  bool accept(const Attribute&, std::string_view) {
    return false;
  }
  bool accept(const OptionalList<Kind>& attribute, std::string_view word) { return accept_list(attribute, word); }
  bool accept(const ListPerItem<Kind>& attribute, std::string_view word) { return accept_list(attribute, word); }
  template <class Attribute>
  bool accept_list(const Attribute& attribute, std::string_view word) {
    if (word != attribute.name) return false;
    cursor_.expect("=");
    read(cursor_, kind_.*attribute.member, "");
    return true;
  }
  template <class T>
  bool accept(const Enumerator<Kind, T>& attribute, std::string_view word) {
    return find(word, kind_.*attribute.member);
  }
  bool accept(const Flag<Kind>& attribute, std::string_view word) {
    if (word != attribute.name) return false;
    kind_.*attribute.member = attribute.value;
    return true;
  }

  TextCursor& cursor_;
  Kind kind_;
};

}  // namespace

std::string print_kind(const NodeKind& kind) {
  if (std::holds_alternative<Elementwise>(kind)) return std::string(name_of(std::get<Elementwise>(kind).op));
  return std::visit([]<class Kind>(const Kind& of) { return std::string(NodeTraits<Kind>::keyword) + print_attributes(of); }, kind);
}

NodeKind parse_kind(TextCursor& cursor, std::string_view keyword, TextCursor start) {
  std::optional<NodeKind> kind;
  for_each_kind([&]<class Kind>() {
    if constexpr (!std::is_same_v<Kind, Elementwise> && !std::is_same_v<Kind, Extern>)
      if (keyword == NodeTraits<Kind>::keyword) kind = AttributeParser<Kind>(cursor).parse();
  });
  if (!kind) start.fail("a node kind or scalar op");
  return std::move(*kind);
}

}  // namespace cxxinductor::graph
