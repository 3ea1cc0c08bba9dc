// Functions that users registered with their ops (ir/registered_ops.h), before the kernels of a unit that call them.
#pragma once

#include <string_view>
#include <vector>

#include "ir/plan/plan.h"
#include "support/error.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {

// source and real: of the target, members of ScalarOpInfo. Each text once, as it stands; compilers' messages name the op as its file. C++ would convert an
// operand or result of double to float without a word, so an expression of type float where double is needed does not compile.
void emit_registered_sources(const std::vector<const plan::Kernel*>& kernels, std::string_view ScalarOpInfo::*source, std::string_view ScalarOpInfo::*real,
                             TextWriter& out);

// UserError that names the registered ops that the kernels apply, for a compiler's error about them; returns where they apply none.
void throw_if_registered(const std::vector<const plan::Kernel*>& kernels, const Error& error);

}  // namespace cxxinductor::codegen
