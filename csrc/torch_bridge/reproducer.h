// What is left behind when a bug of ours sends a graph to the ATen executor: a folder from which somebody without the
// model can see it again.
#pragma once

#include <string>

#include "frontend/import_environment.h"
#include "model/call_graph.h"
#include "support/options.h"

namespace cxxinductor::torch_bridge {

// Writes error.txt, calls.txt and, as far as the compile still gets, the three IRs and the sources of all kernels.
// The folder lies under options.dump_dir, else under the system's folder for temporary files. Returns its path; throws
// UserError when it cannot be written.
std::string write_reproducer(const model::CallGraph& calls, const frontend::ImportEnvironment& environment, const Options& options, const std::string& error);

}  // namespace cxxinductor::torch_bridge
