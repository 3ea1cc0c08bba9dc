// A plan kernel as a reader and a reproducer see it: source text of its target.
#pragma once

#include <string>
#include <vector>

#include "codegen/templates.h"
#include "ir/origin.h"
#include "ir/plan/plan.h"
#include "ir/target.h"

namespace cxxinductor::codegen {

// The variant that inputs at aligned addresses need.
std::string source_text(const plan::Kernel& kernel, const Target& target, const OriginTable& origins, Templates templates);
// All kernels of one device as one unit, with 32-bit indices.
std::string unit_text(const std::vector<const plan::Kernel*>& kernels, const Target& target, const OriginTable& origins);

}  // namespace cxxinductor::codegen
