// Calls of control flow: "higher_order::cond" and its like, whose arguments are those of torch's operators with texts in place of
// graphs.
#pragma once

#include <string>
#include <vector>

#include "model/call_graph.h"

namespace cxxinductor::model {

struct ControlFlow {
  enum class Kind : uint8_t { Cond, WhileLoop, Scan, Map, AssociativeScan };
  Kind kind = Kind::Cond;
  // Cond: of true and of false; WhileLoop: condition, body.
  std::vector<const CallGraph*> subgraphs;
  // Operands are values, numbers and expressions.
  Arg predicate;             // Cond
  std::vector<Arg> carried;  // WhileLoop, Scan: what one step hands to the next, at first
  std::vector<Arg> rows;     // Scan, Map: a step sees one row of each; AssociativeScan: it combines what was combined before with one
  std::vector<Arg> others;   // the same in each step
};

bool is_control_flow(const Call& call);
// UserError where operands, subgraphs and results do not fit in number or kind.
ControlFlow read_control_flow(const CallGraph& calls, const Call& call);

}  // namespace cxxinductor::model
