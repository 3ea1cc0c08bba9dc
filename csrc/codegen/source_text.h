// A plan kernel as a reader and a reproducer see it: source text of its device.
#pragma once

#include <string>

#include "codegen/templates.h"
#include "ir/origin.h"
#include "ir/plan/plan.h"
#include "ir/target.h"

namespace cxxinductor::codegen {

// The variant that inputs at aligned addresses need.
std::string source_text(const plan::Kernel& kernel, const Target& target, const OriginTable& origins, Templates templates);

}  // namespace cxxinductor::codegen
