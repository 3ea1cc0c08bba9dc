// Writes what a compile did to a folder that a person can read.
#pragma once

#include <string>

#include "driver/compile.h"

namespace cxxinductor::driver {

// folder/<name>.<nn>/: calls.txt, graph.txt, loops.txt, fused.txt, plan.txt, missed_fusions.txt, and of each kernel its
// source kernels/<name>.cu|.cpp and a plan of one launch kernels/<name>.plan, as `what` asks ("graph,plan,source" or
// "all") and as far as the report has them. The templates that the sources include lie beside them under their names
// (kernels/cuda/prelude.cuh). kernels/README.txt holds the command that times each kernel alone. Returns the folder;
// UserError when it cannot be written.
std::string write_dump(const Report& report, const std::string& name, const std::string& folder,
                       const std::string& what);

}  // namespace cxxinductor::driver
