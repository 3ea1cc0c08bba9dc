// What each kind of statement consists of, once: StmtTraits<Kind> lists its members. Equality, hashes, operands and the rewriting of statements and
// expressions follow from it; a kind without a row, or a member that its row does not name, does not compile. Text forms: print_region.cpp and
// parse_region.cpp. How to add a kind: docs/howto/loops_statement.md.
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "ir/loops/loops.h"
#include "support/member_count.h"

namespace cxxinductor::loops {

// A statement that may be absent. All others are valid.
template <class Kind>
struct Maybe {
  StmtId Kind::*member;
};

template <class Kind>
struct StmtTraits;

// In the order in which operands() gives the statements among the members and in their expressions.
template <>
struct StmtTraits<Load> {
  static constexpr std::tuple members{&Load::buffer, &Load::coords, Maybe{&Load::mask}, &Load::other};
};
template <>
struct StmtTraits<Constant> {
  static constexpr std::tuple members{&Constant::value};
};
template <>
struct StmtTraits<Index> {
  static constexpr std::tuple members{&Index::value};
};
template <>
struct StmtTraits<Apply> {
  static constexpr std::tuple members{&Apply::op, &Apply::operands};
};
template <>
struct StmtTraits<Reduce> {
  static constexpr std::tuple members{&Reduce::reduction, &Reduce::operand, &Reduce::over};
};
template <>
struct StmtTraits<Project> {
  static constexpr std::tuple members{&Project::of, &Project::result};
};
template <>
struct StmtTraits<Store> {
  static constexpr std::tuple members{&Store::buffer,      &Store::coords, &Store::conflict_order, &Store::value,
                                      Maybe{&Store::mask}, &Store::update, &Store::combine};
};
template <>
struct StmtTraits<Check> {
  static constexpr std::tuple members{&Check::index, &Check::bound, &Check::what};
};

namespace detail {

template <class Kinds>
constexpr bool have_all_members = false;
template <class... Kinds>
constexpr bool have_all_members<std::variant<Kinds...>> =
    ((std::tuple_size_v<std::remove_const_t<decltype(StmtTraits<Kinds>::members)>> == member_count<Kinds>) && ...);

template <class T, class... Kinds>
constexpr bool is_any_of = (std::is_same_v<T, Kinds> || ...);
template <class T>
constexpr bool holds_uses = is_any_of<T, StmtId, sym::Expr, std::optional<sym::Expr>, std::vector<StmtId>, std::vector<sym::Expr>>;
template <class T>
constexpr bool holds_no_uses = std::is_arithmetic_v<T> || std::is_enum_v<T> || is_any_of<T, BufferId, VarSet, Scalar, std::string>;

// The statements and expressions of one member.
template <class Statement, class Expression>
struct VisitMember {
  const Statement& statement;
  const Expression& expression;

  template <class Kind, class T, class Owner>
  void operator()(Kind& kind, T Owner::*member) const {
    visit(kind.*member);
  }
  template <class Kind, class Owner>
  void operator()(Kind& kind, Maybe<Owner> maybe) const {
    if ((kind.*maybe.member).valid()) visit(kind.*maybe.member);
  }

 private:
  template <class Member>
  void visit(Member& member) const {
    using T = std::remove_const_t<Member>;
    static_assert(holds_uses<T> || holds_no_uses<T>, "visit members of this type, or list it as holding no statement and no expression");
    if constexpr (std::is_same_v<T, StmtId>) statement(member);
    if constexpr (std::is_same_v<T, sym::Expr>) expression(member);
    if constexpr (std::is_same_v<T, std::optional<sym::Expr>>)
      if (member) expression(*member);
    if constexpr (std::is_same_v<T, std::vector<StmtId>> || std::is_same_v<T, std::vector<sym::Expr>>)
      for (auto& item : member) visit(item);
  }
};

}  // namespace detail

static_assert(detail::have_all_members<StmtKind>, "a member of a kind of statement is not named");

// Calls statement(id) and expression(e) with those that a statement reads, in order. They may change what they get where the statement is not const.
// AnyStmt: Stmt or const Stmt.
template <class AnyStmt, class Statement, class Expression>
void for_each_use(AnyStmt& stmt, const Statement& statement, const Expression& expression) {
  const detail::VisitMember<Statement, Expression> visit{statement, expression};
  std::visit(
      [&]<class Kind>(Kind& kind) {
        std::apply([&](const auto&... members) { (visit(kind, members), ...); }, StmtTraits<std::remove_const_t<Kind>>::members);
      },
      stmt.kind);
}

// Replaces each expression of a statement by f(expression), in that order.
template <class F>
void rewrite_expressions(Stmt& stmt, const F& f) {
  for_each_use(stmt, [](StmtId&) {}, [&](sym::Expr& e) { e = f(e); });
}

bool same_statement(const Stmt& a, const Stmt& b);  // equal kinds with equal members, of one dtype
size_t hash_of(const Stmt& stmt);                   // equal for the same statements

}  // namespace cxxinductor::loops
