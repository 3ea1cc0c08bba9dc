// What each kind of statement consists of and does, once: StmtTraits<Kind>. From its members follow equality, hashes, operands and the rewriting of
// statements and expressions; from the rest the answers of stmt_properties.h, by which passes and kernels treat statements. A kind that does not state
// one of them, or a member that is not listed, does not compile. Text forms: print_region.cpp and parse_region.cpp. How to add a kind:
// docs/howto/loops_statement.md.
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

// When the value of a statement is known. Where it never is, the statement acts: it is executed once at each of its points, and is never dead.
enum class Known : uint8_t { Never, AtPoint, AfterRow };

// The members of a state that points of a row update (RowState of stmt_properties.h). A kind that has one is executed by one row loop.
template <class Kind>
struct RowMembers {
  Reduction Kind::*reduction;
  StmtId Kind::*operand;
  VarSet Kind::*over;
};
// Of a kind that reads its operands at its own points alone.
struct NoRow {};

// members: in the order in which operands() gives the statements among them and in their expressions.
template <class Kind>
struct StmtTraits;

template <>
struct StmtTraits<Load> {
  static constexpr std::tuple members{&Load::buffer, &Load::coords, Maybe{&Load::mask}, &Load::other};
  static constexpr Known known = Known::AtPoint;
  static constexpr NoRow row{};
};
template <>
struct StmtTraits<Constant> {
  static constexpr std::tuple members{&Constant::value};
  static constexpr Known known = Known::AtPoint;
  static constexpr NoRow row{};
};
template <>
struct StmtTraits<Index> {
  static constexpr std::tuple members{&Index::value};
  static constexpr Known known = Known::AtPoint;
  static constexpr NoRow row{};
};
template <>
struct StmtTraits<Apply> {
  static constexpr std::tuple members{&Apply::op, &Apply::operands};
  static constexpr Known known = Known::AtPoint;
  static constexpr NoRow row{};
};
template <>
struct StmtTraits<Reduce> {
  static constexpr std::tuple members{&Reduce::reduction, &Reduce::operand, &Reduce::over};
  static constexpr Known known = Known::AfterRow;
  static constexpr RowMembers row{&Reduce::reduction, &Reduce::operand, &Reduce::over};
};
template <>
struct StmtTraits<Project> {
  static constexpr std::tuple members{&Project::of, &Project::result};
  static constexpr Known known = Known::AtPoint;
  static constexpr NoRow row{};
};
template <>
struct StmtTraits<Store> {
  static constexpr std::tuple members{&Store::buffer,      &Store::coords, &Store::conflict_order, &Store::value,
                                      Maybe{&Store::mask}, &Store::update, &Store::combine};
  static constexpr Known known = Known::Never;
  static constexpr NoRow row{};
};
template <>
struct StmtTraits<Check> {
  static constexpr std::tuple members{&Check::index, &Check::bound, &Check::what};
  static constexpr Known known = Known::Never;
  static constexpr NoRow row{};
};

namespace detail {

template <class Kinds>
constexpr bool have_all_members = false;
template <class... Kinds>
constexpr bool have_all_members<std::variant<Kinds...>> = ((std::tuple_size_v<std::remove_const_t<decltype(StmtTraits<Kinds>::members)>> ==
                                                            member_count<Kinds>)&&...);

template <class Kind>
constexpr bool has_row = !std::is_same_v<std::remove_const_t<decltype(StmtTraits<Kind>::row)>, NoRow>;
template <class T, class Kind>
constexpr int count_sets(T Kind::*) {
  return std::is_same_v<T, VarSet>;
}
template <class Kind>
constexpr int count_sets(Maybe<Kind>) {
  return 0;
}
// Sets of variables are renamed as the row's: a kind has one if it has a row. What is known after a row has one, what acts has none.
template <class Kind>
constexpr bool has_fitting_row = [] {
  const int sets = std::apply([](auto... members) { return (0 + ... + count_sets(members)); }, StmtTraits<Kind>::members);
  return has_row<Kind> ? sets == 1 && StmtTraits<Kind>::known != Known::Never : sets == 0 && StmtTraits<Kind>::known != Known::AfterRow;
}();
template <class Kinds>
constexpr bool have_fitting_rows = false;
template <class... Kinds>
constexpr bool have_fitting_rows<std::variant<Kinds...>> = (has_fitting_row<Kinds> && ...);

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
static_assert(detail::have_fitting_rows<StmtKind>, "a kind of statement states a row or a time of its value that its members do not fit");

// Calls statement(id) and expression(e) with those that a statement reads, in order. They may change what they get where the statement is not const.
// AnyStmt: Stmt or const Stmt.
template <class AnyStmt, class Statement, class Expression>
void for_each_use(AnyStmt& stmt, const Statement& statement, const Expression& expression) {
  const detail::VisitMember<Statement, Expression> visit{statement, expression};
  std::visit(
      [&]<class Kind>(Kind& kind) { std::apply([&](const auto&... members) { (visit(kind, members), ...); }, StmtTraits<std::remove_const_t<Kind>>::members); },
      stmt.kind);
}

// Replaces each expression of a statement by f(expression), in that order.
template <class F>
void rewrite_expressions(Stmt& stmt, const F& f) {
  for_each_use(
      stmt, [](StmtId&) {}, [&](sym::Expr& e) { e = f(e); });
}

bool same_statement(const Stmt& a, const Stmt& b);  // equal kinds with equal members, of one dtype
size_t hash_of(const Stmt& stmt);                   // equal for the same statements

}  // namespace cxxinductor::loops
