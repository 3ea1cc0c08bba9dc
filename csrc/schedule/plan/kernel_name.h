// Names that say what a kernel computes.
#pragma once

#include <string>

#include "ir/loops/loops.h"

namespace cxxinductor::schedule {

// The calls that the statements come from, reductions' first, at most three, and the module of the main origin:
// "native_layer_norm_gelu__transformer_h_ln_1". Without origins, the reductions and operations.
std::string kernel_hint(const loops::Region& region, const OriginTable& origins);

// The origin of the first reduction, else of the first store: what a launch is reported under.
OriginId main_origin(const loops::Region& region);

}  // namespace cxxinductor::schedule
