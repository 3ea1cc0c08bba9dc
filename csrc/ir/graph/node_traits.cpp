#include "ir/graph/node_traits.h"

#include "ir/arg_expressions.h"
#include "ir/hasher.h"

namespace cxxinductor::graph {
namespace {

template <class Kind>
bool same_attributes(const Kind& a, const Kind& b) {
  bool same = true;
  for_each_attribute<Kind>([&](const auto& attribute) { same = same && a.*attribute.member == b.*attribute.member; });
  return same;
}

using Visit = std::function<void(sym::Expr)>;

void visit_expressions(sym::Expr e, const Visit& visit) { visit(e); }
void visit_expressions(const std::vector<sym::Expr>& list, const Visit& visit) {
  for (sym::Expr e : list) visit(e);
}
// What holds none. A new type of attribute has to be named here, or above with what it holds.
template <class T>
concept WithoutExpressions = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, Scalar> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, std::vector<int>> || std::is_same_v<T, std::vector<bool>>;
template <WithoutExpressions T>
void visit_expressions(const T&, const Visit&) {}

}  // namespace

bool same_kind(const NodeKind& a, const NodeKind& b) {
  if (a.index() != b.index() || std::holds_alternative<Extern>(a)) return false;
  return std::visit([&]<class Kind>(const Kind& kind) { return same_attributes(kind, std::get<Kind>(b)); }, a);
}

size_t hash_of(const NodeKind& kind) {
  Hasher hasher(kind.index());
  std::visit([&]<class Kind>(const Kind& of) { for_each_attribute<Kind>([&](const auto& attribute) { hasher.add(of.*attribute.member); }); }, kind);
  return hasher.hash();
}

void for_each_expression(const NodeKind& kind, const Visit& visit) {
  if (const auto* callee = std::get_if<Extern>(&kind)) return cxxinductor::for_each_expression(*callee, visit);
  std::visit([&]<class Kind>(const Kind& of) { for_each_attribute<Kind>([&](const auto& attribute) { visit_expressions(of.*attribute.member, visit); }); },
             kind);
}

}  // namespace cxxinductor::graph
