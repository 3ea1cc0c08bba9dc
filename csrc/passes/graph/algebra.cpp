#include "passes/graph/algebra.h"

#include <algorithm>

#include "support/error.h"
#include "support/fork_locks.h"
#include "support/text_cursor.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;

Term parse_term(TextCursor& cursor) {
  Term term;
  if (cursor.looking_at_number() || cursor.looking_at("-")) {
    term.constant = cursor.real("a constant");
    return term;
  }
  TextCursor start = cursor;
  const std::string word = cursor.identifier("an op, a constant or x");
  if (word == "x") return term;
  term.op = find_scalar_op(word);
  if (!term.op || info(*term.op).rule == TypeRule::Cast) start.fail("an op, a constant or x");
  cursor.expect("(");
  do term.operands.push_back(parse_term(cursor));
  while (cursor.accept(","));
  cursor.expect(")");
  if (term.operands.size() != static_cast<size_t>(info(*term.op).arity)) start.fail(fmt::format("{} operands", info(*term.op).arity));
  return term;
}

std::vector<Identity> parse_rows() {
  std::vector<Identity> rows{
#define SAME_AS_X(text, dtypes) {text, dtypes, {}},
#include "passes/graph/algebra.def"
#undef SAME_AS_X
  };
  for (Identity& row : rows) row.term = passes::parse_term(row.text);
  return rows;
}

class Matcher {
 public:
  explicit Matcher(const graph::Graph& graph) : graph_(graph) {}

  // What x stands for where the term is the node's expression.
  ValueId match(const Term& term, const graph::Node& node) {
    x_ = ValueId();
    return is_node(term, node) ? x_ : ValueId();
  }

 private:
  bool is_node(const Term& term, const graph::Node& node) {
    const auto* elementwise = node.as<graph::Elementwise>();
    if (!elementwise || elementwise->op != term.op || node.operands.size() != term.operands.size()) return false;
    const ValueId before = x_;
    if (std::ranges::equal(term.operands, node.operands, [this](const Term& t, const graph::Operand& operand) { return is_operand(t, operand); })) return true;
    x_ = before;
    return info(elementwise->op).traits.commutative && node.operands.size() == 2 && is_operand(term.operands[0], node.operands[1]) &&
           is_operand(term.operands[1], node.operands[0]);
  }

  bool is_operand(const Term& term, const graph::Operand& operand) {
    if (term.constant) {
      const auto* scalar = std::get_if<Scalar>(&operand);
      return scalar && *scalar == Scalar::from_real(scalar->dtype(), *term.constant);
    }
    const auto* id = std::get_if<ValueId>(&operand);
    if (!id) return false;
    if (term.is_variable()) {
      if (!x_.valid()) x_ = *id;
      return x_ == *id;
    }
    const graph::NodeId producer = graph_.values[*id].producer;
    return producer.valid() && is_node(term, graph_.nodes[producer]);
  }

  const graph::Graph& graph_;
  ValueId x_;
};

}  // namespace

Term parse_term(std::string_view text) {
  TextCursor cursor(text);
  Term term = parse_term(cursor);
  if (!cursor.at_end()) cursor.fail("the end of the expression");
  return term;
}

std::span<const Identity> identities() {
  static constinit MadeOnce<std::vector<Identity>, ForkLock::Leaf> rows;
  return rows.get(parse_rows);
}

ValueId same_by_algebra(const graph::Graph& graph, const graph::Node& node) {
  Matcher matcher(graph);
  for (const Identity& identity : identities()) {
    const ValueId x = matcher.match(identity.term, node);
    if (x.valid() && accepts(identity.dtypes, graph.values[x].dtype)) return x;
  }
  return {};
}

}  // namespace cxxinductor::passes
