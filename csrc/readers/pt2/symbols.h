// Symbolic sizes and conditions of an exported program, which are sympy.srepr text.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "readers/pt2/json.h"
#include "sym/expr.h"
#include "sym/simplify.h"

namespace cxxinductor::readers {

class Symbols {
 public:
  // The integer of {"as_int": 3} or {"as_expr": {"expr_str": ..}}. Each distinct text is parsed once.
  sym::Expr integer(const Field& sym_int);
  // A truth value as 1 or 0, of {"as_bool": true} or {"as_expr": ..}: comparisons of integers, and, or, not.
  // Unsupported: of what else.
  sym::Expr truth(const Field& sym_bool);

 private:
  std::unordered_map<std::string, sym::Expr> parsed_;
};

// {"s0": {"min_val": 2, "max_val": null}}: null stands for unbounded. Ranges of compound expressions ("2*s0"), which
// follow from those of their symbols, are left out.
void read_ranges(const Field& constraints, sym::Assumptions& assumptions);

}  // namespace cxxinductor::readers
