// Functions that users registered with their ops (ir/registered_ops.h), before the kernels of a unit that call them.
#pragma once

#include <string_view>
#include <vector>

#include "ir/plan/plan.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {

// source: of the target, a member of ScalarOpInfo. Each text once, as it stands.
void emit_registered_sources(const std::vector<const plan::Kernel*>& kernels, std::string_view ScalarOpInfo::*source, TextWriter& out);

}  // namespace cxxinductor::codegen
