// What a program hears of compiles on its own accord. torch.compile, which knows the user's line, says these things itself.
#pragma once

#include <string>

#include "support/options.h"
#include "torch_bridge/compiled_graph.h"

namespace cxxinductor::torch_bridge {

// To stderr what options explain and time ask for.
void print_compile(const CompiledGraph& graph, const std::string& name, const Options& options);
// A warning of torch's about what keeps the cache on disk from being used, once.
void warn_of_cache(const Options& options);

}  // namespace cxxinductor::torch_bridge
