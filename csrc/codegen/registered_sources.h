// Functions that users registered with their ops (ir/registered_ops.h), before the kernels of a unit that call them.
#pragma once

#include <string_view>
#include <vector>

#include "ir/plan/plan.h"
#include "support/error.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {

// source: of the target, a member of ScalarOpInfo. Each text once, as it stands; compilers' messages name the op as its file.
void emit_registered_sources(const std::vector<const plan::Kernel*>& kernels, std::string_view ScalarOpInfo::*source, TextWriter& out);

// UserError that names the registered ops that the kernels apply, for a compiler's error about them; returns where they apply none.
void throw_if_registered(const std::vector<const plan::Kernel*>& kernels, const Error& error);

}  // namespace cxxinductor::codegen
