#include "ir/loops/stmt_traits.h"

#include "ir/hasher.h"

namespace cxxinductor::loops {
namespace {

template <class Kind, class T>
constexpr auto member_of(T Kind::*member) {
  return member;
}
template <class Kind>
constexpr auto member_of(Maybe<Kind> maybe) {
  return maybe.member;
}

// Calls visit(member pointer) with each member of the kind.
template <class Kind, class Visit>
void for_each_member(const Visit& visit) {
  std::apply([&](const auto&... members) { (visit(member_of(members)), ...); }, StmtTraits<Kind>::members);
}

}  // namespace

bool same_statement(const Stmt& a, const Stmt& b) {
  if (a.dtype != b.dtype || a.kind.index() != b.kind.index()) return false;
  return std::visit(
      [&]<class Kind>(const Kind& kind) {
        const Kind& other = std::get<Kind>(b.kind);
        bool same = true;
        for_each_member<Kind>([&](const auto& member) { same = same && kind.*member == other.*member; });
        return same;
      },
      a.kind);
}

size_t hash_of(const Stmt& stmt) {
  Hasher hasher(stmt.kind.index());
  hasher.add(stmt.dtype);
  std::visit([&]<class Kind>(const Kind& kind) { for_each_member<Kind>([&](const auto& member) { hasher.add(kind.*member); }); }, stmt.kind);
  return hasher.hash();
}

}  // namespace cxxinductor::loops
