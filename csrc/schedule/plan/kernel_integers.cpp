#include "schedule/plan/kernel_integers.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "ir/loops/stmt_traits.h"
#include "ir/plan/text.h"

namespace cxxinductor::schedule {
namespace {

using loops::rewrite_expressions;
using plan::Kernel;
using plan::StmtId;
using sym::Expr;

std::string shape(Expr e);

// Operands of a product, minimum or maximum, by their shapes: their order in the expression depends on integers.
std::vector<std::pair<std::string, Expr>> by_shape(std::span<const Expr> operands) {
  std::vector<std::pair<std::string, Expr>> sorted;
  for (Expr operand : operands) sorted.emplace_back(shape(operand), operand);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return sorted;
}

std::string_view word_of(sym::Kind kind) {
  switch (kind) {
    case sym::Kind::FloorDiv:
      return "div";
    case sym::Kind::Mod:
      return "mod";
    case sym::Kind::Min:
      return "min";
    case sym::Kind::Max:
      return "max";
    case sym::Kind::Mul:
      return "mul";
    case sym::Kind::Constant:
    case sym::Kind::Symbol:
    case sym::Kind::Add:
      break;
  }
  return "";
}

std::string monomial_shape(Expr e) {
  if (e.is_symbol()) return std::string(e.name());
  const bool ordered = e.kind() == sym::Kind::FloorDiv || e.kind() == sym::Kind::Mod;
  std::string text = std::string(word_of(e.kind())) + "(";
  if (ordered)
    for (Expr operand : e.operands()) text += shape(operand) + ",";
  else
    for (const auto& [operand, _] : by_shape(e.operands())) text += operand + ",";
  return text + ")";
}

struct Sum {
  std::vector<std::pair<std::string, sym::Term>> terms;  // by shape
  int64_t constant = 0;
};

Sum sum_of(Expr e) {
  Sum sum;
  for (const sym::Term& term : sym::linear_terms(e)) {
    if (term.monomial.is_constant())
      sum.constant = term.coefficient;
    else
      sum.terms.emplace_back(monomial_shape(term.monomial), term);
  }
  std::stable_sort(sum.terms.begin(), sum.terms.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return sum;
}

std::string shape(Expr e) {
  std::string text;
  for (const auto& [monomial, term] : sum_of(e).terms) text += monomial + "+";
  return text;
}

class Rewriter {
 public:
  explicit Rewriter(const IntegerRewrite& rewrite) : rewrite_(rewrite) {}

  Expr operator()(Expr e, bool fixed) const {
    const Sum sum = sum_of(e);
    Expr result = 0;
    for (const auto& [_, term] : sum.terms) {
      const Expr coefficient = rewrite_(term.coefficient, fixed);
      result = result + coefficient * monomial(term.monomial, fixed);
    }
    return result + rewrite_(sum.constant, fixed);
  }

 private:
  Expr monomial(Expr e, bool fixed) const {
    std::vector<Expr> operands;
    switch (e.kind()) {
      case sym::Kind::Constant:
      case sym::Kind::Symbol:
        return e;
      case sym::Kind::Add:
        return (*this)(e, fixed);
      case sym::Kind::FloorDiv:
      case sym::Kind::Mod: {
        const Expr a = (*this)(e.operands()[0], true), b = (*this)(e.operands()[1], true);
        return e.kind() == sym::Kind::Mod ? sym::mod(a, b) : sym::floor_div(a, b);
      }
      case sym::Kind::Mul:
        for (const auto& [_, operand] : by_shape(e.operands()))
          operands.push_back(operand.kind() == sym::Kind::Add ? (*this)(operand, fixed) : monomial(operand, fixed));
        return sym::product(operands);
      case sym::Kind::Min:
      case sym::Kind::Max:
        for (const auto& [_, operand] : by_shape(e.operands())) operands.push_back((*this)(operand, true));
        break;
    }
    Expr folded = operands.front();
    for (Expr operand : operands) folded = e.kind() == sym::Kind::Min ? sym::min(folded, operand) : sym::max(folded, operand);
    return folded;
  }

  const IntegerRewrite& rewrite_;
};

constexpr int64_t most_updates = 64;  // of a state by one thread
constexpr int64_t cpu_turn = 4;       // compilers unroll loops over a constant multiple of it

// Loops over the one row variable of Columns test their bounds anyway, except where turns of a block take all. Longer
// rows have sums of another kind.
bool may_have_any_length(const Kernel& kernel) {
  if (!is_columns(kernel.mapping) || kernel.mapping.row.size() != 1) return false;
  const Expr length = kernel.region.vars[kernel.mapping.row.front()].extent;
  const auto* columns = kernel.mapping.as<plan::Columns>();
  const int64_t threads = columns ? columns->threads_per_row : 1, turn = threads * (columns ? columns->in_flight : cpu_turn);
  return length.is_constant() && length.constant() <= most_updates * threads && length.constant() % turn != 0;
}

}  // namespace

void rewrite_integers(Kernel& kernel, const IntegerRewrite& rewrite) {
  const Rewriter rewritten(rewrite);
  const bool any_length = may_have_any_length(kernel);
  for (size_t v = 0; v < kernel.region.vars.size(); ++v) {
    const plan::VarId id(v);
    const bool row = std::find(kernel.mapping.row.begin(), kernel.mapping.row.end(), id) != kernel.mapping.row.end();
    kernel.region.vars[id].extent = rewritten(kernel.region.vars[id].extent, row && !any_length);
  }
  for (size_t s = 0; s < kernel.region.body.size(); ++s) {
    const StmtId id(s);
    loops::Stmt& stmt = kernel.region.body[id];
    rewrite_expressions(stmt, [&](Expr e) { return rewritten(e, false); });
    if (stmt.as<loops::Load>() || stmt.as<loops::Store>()) kernel.offsets[id] = rewritten(kernel.offsets[id], false);
  }
}

std::string pattern_of(const Kernel& kernel) {
  Kernel blank = kernel;
  blank.name = blank.region.name = "k";
  blank.bytes_read_hint = blank.bytes_written_hint = 0;
  blank.assumptions = {};
  blank.index_limit = 0;
  std::string shapes;
  const auto strip = [&](Expr e) {
    shapes += shape(e) + ";";
    return Expr(0);
  };
  for (loops::Var& var : blank.region.vars) var.extent = strip(var.extent);
  for (size_t s = 0; s < blank.region.body.size(); ++s) {
    const StmtId id(s);
    loops::Stmt& stmt = blank.region.body[id];
    rewrite_expressions(stmt, strip);
    if (stmt.as<loops::Load>() || stmt.as<loops::Store>()) blank.offsets[id] = strip(blank.offsets[id]);
  }
  return plan::print(blank) + shapes;
}

}  // namespace cxxinductor::schedule
