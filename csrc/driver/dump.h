// Writes what a compile did to a folder that a person can read.
#pragma once

#include <span>
#include <string>

#include "driver/compile.h"

namespace cxxinductor::driver {

// The options, the devices' architectures and the passes that users registered, a line each, for who compiles the graph again.
std::string settings_text(const Options& options, const Targets& targets, const TextPasses& text_passes);

// folder/<name>.<nn>/: settings.txt (of what "all"), calls.txt, a file <NN>-<stage>.txt of the form after each stage, numbered in pipeline order,
// missed_fusions.txt, a file <NN>-<stage>+<pass>.txt after each text pass, and of each kernel its source kernels/<name>.cu|.cpp and a plan of one launch
// kernels/<name>.plan, as `what` (option dump) asks and as far as the report has them. "graph", "loops" and "plan" are all stages that make such a form;
// "after:lower" is one. The templates that the sources include lie beside them under their names (kernels/cuda/prelude.cuh). kernels/README.txt holds the
// command that times each kernel alone. Returns the folder; UserError when it cannot be written.
std::string write_dump(const Report& report, const std::string& name, const std::string& folder, const std::string& what);
// UserError lists the stages and text passes when options.dump names an unknown one. A caller that takes options from a user asks before it compiles.
void check_dump(const Options& options, std::span<const std::string> text_passes = {});

}  // namespace cxxinductor::driver
