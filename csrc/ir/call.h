// A call of an op, as the three IRs hold it: which op, its arguments as data, and what is known of its results. The IRs add their own kinds of
// operands and results. Rows of ops that passes know, with their arguments by role: ir/library_ops.h; text form: ir/call_text.h; invariants:
// ir/verify_call.h.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/call_args.h"
#include "ir/definition.h"

namespace cxxinductor {

struct Call {
  std::string callee;     // "aten::mm"
  std::string overload;   // "" or "default" or "dim_IntList"
  std::vector<Arg> args;  // positional, in schema order, trailing defaults may be absent
  std::vector<std::pair<std::string, Arg>> kwargs;
  std::vector<int> alias_of;  // for each result: index of the operand that it may alias, or -1 when fresh
  std::vector<uint32_t> mutated_operands;
  std::vector<Definition> defines;
  bool planned_out = false;  // the plan provides the results' buffers, into which the call writes
};

}  // namespace cxxinductor
