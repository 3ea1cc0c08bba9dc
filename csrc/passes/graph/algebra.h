// Algebraic identities of scalar ops: the rows of algebra.def, and the matcher that finds them in a graph.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace cxxinductor::passes {

// An expression over one variable: an op on terms, a constant, or the variable.
struct Term {
  std::optional<ScalarOp> op;
  std::vector<Term> operands;
  std::optional<double> constant;

  bool is_variable() const { return !op && !constant; }
};
Term parse_term(std::string_view text);  // "mul(x, 1)"; a UserError says what does not fit

struct Identity {
  std::string_view text;
  TypeSet dtypes;  // of the expression and of x
  Term term;       // equals x
};
std::span<const Identity> identities();

// The value that the node's result equals by an identity; invalid where none applies.
graph::ValueId same_by_algebra(const graph::Graph& graph, const graph::Node& node);

}  // namespace cxxinductor::passes
