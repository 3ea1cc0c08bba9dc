// Bodies as text, one step per line: for dumps and tests.
#pragma once

#include <string>
#include <string_view>

#include "kernels/body/body.h"

namespace cxxinductor::kernels {

// "%5 = sub(%1, %2)", as far as a body needs to know it.
std::string statement_text(const plan::Kernel& kernel, StmtId id);
std::string_view name_of(Step::Kind kind);
std::string_view name_of(Where where);
std::string print_body(const plan::Kernel& kernel, const Body& body);

}  // namespace cxxinductor::kernels
