// Which names Expr::symbol takes.
#pragma once

#include <string_view>

namespace cxxinductor::sym {

// [A-Za-z_][A-Za-z0-9_.]*
bool may_name_symbol(std::string_view name);

}  // namespace cxxinductor::sym
