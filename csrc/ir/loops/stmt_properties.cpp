#include "ir/loops/stmt_properties.h"

#include <algorithm>
#include <array>

#include "ir/loops/stmt_traits.h"
#include "support/error.h"

namespace cxxinductor::loops {
namespace {

template <class Kinds>
struct KnownOf;
template <class... Kinds>
struct KnownOf<std::variant<Kinds...>> {
  static constexpr std::array by_kind{StmtTraits<Kinds>::known...};
};

Known known(const Stmt& stmt) { return KnownOf<StmtKind>::by_kind[stmt.kind.index()]; }

}  // namespace

bool is_effect(const Stmt& stmt) { return known(stmt) == Known::Never; }

std::optional<RowState> row_state(const Stmt& stmt) {
  return std::visit(
      []<class Kind>(const Kind& kind) -> std::optional<RowState> {
        if constexpr (detail::has_row<Kind>) {
          constexpr auto row = StmtTraits<Kind>::row;
          return RowState{kind.*row.reduction, kind.*row.operand, kind.*row.over};
        }
        return std::nullopt;
      },
      stmt.kind);
}

void set_row(Stmt& stmt, StmtId operand, VarSet over) {
  std::visit(
      [&]<class Kind>(Kind& kind) {
        if constexpr (detail::has_row<Kind>) {
          constexpr auto row = StmtTraits<Kind>::row;
          kind.*row.operand = operand;
          kind.*row.over = over;
        } else {
          throw_internal("a statement that keeps no state gets a row");
        }
      },
      stmt.kind);
}

bool is_known_after_row(const Stmt& stmt) { return known(stmt) == Known::AfterRow; }

bool is_of_state(const Stmt& stmt) { return is_known_after_row(stmt) || stmt.as<Project>() != nullptr; }

bool is_executed_once(const Stmt& stmt) { return is_effect(stmt) || row_state(stmt); }

bool depends_on_row_order(const Stmt& stmt) {
  const auto state = row_state(stmt);
  return state && (form(state->reduction).takes_index() || !is_known_after_row(stmt));
}

VarSet own_vars(const Stmt& stmt, VarSet read) {
  const auto state = row_state(stmt);
  if (!state) return read;
  return is_known_after_row(stmt) ? read - state->over : read | state->over;
}

bool holds_expressions(const Stmt& stmt) {
  bool found = false;
  for_each_use(
      stmt, [](StmtId) {}, [&](sym::Expr) { found = true; });
  return found;
}

bool only_reduces(const Region& region) {
  return std::all_of(region.body.begin(), region.body.end(), [](const Stmt& stmt) { return !row_state(stmt) || is_known_after_row(stmt); });
}

}  // namespace cxxinductor::loops
