// C spelling of an expression, for emitters. Floor semantics are explicit only where the assumptions do not prove the
// operands non-negative.
#pragma once

#include <functional>
#include <string>

#include "sym/expr.h"
#include "sym/simplify.h"

namespace cxxinductor::sym {

struct CSpelling {
  std::function<std::string(std::string_view)> symbol;  // C expression for a symbol, default its name
  std::string integer_suffix;                           // "LL" for 64-bit literals, "" for 32-bit
};
// floor_div and mod become / and % when both sides are proven non-negative, else cxxi_floor_div / cxxi_floor_mod.
std::string to_c(Expr e, const Assumptions& assumptions, const CSpelling& spelling = {});

}  // namespace cxxinductor::sym
