// Writes what a compile did to a folder that a person can read.
#pragma once

#include <string>

#include "driver/compile.h"

namespace cxxinductor::driver {

// folder/<name>.<nn>/: graph.txt, loops.txt, fused.txt, plan.txt, refusals.txt, kernels/<name>.cu|.cpp as `what` asks
// ("graph,plan,source" or "all"). Returns the folder; UserError when it cannot be written.
std::string write_dump(const Report& report, const Target& target, const std::string& name, const std::string& folder,
                       const std::string& what);

}  // namespace cxxinductor::driver
