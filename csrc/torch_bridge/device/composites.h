// What runs ops of the recorded device that are neither recorded as they are nor run through ATen: as calls of other
// ops.
#pragma once

#include <string_view>

#include "torch_bridge/record/composites.h"

namespace cxxinductor::torch_bridge {

// By full name, "aten::t_". Null: there is none.
Composite find_device_composite(std::string_view op);

}  // namespace cxxinductor::torch_bridge
