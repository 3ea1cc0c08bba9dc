#include "torch_bridge/compile_report.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <cstdio>

#include "driver/summary.h"
#include "torch_bridge/providers.h"

namespace cxxinductor::torch_bridge {

void print_compile(const CompiledGraph& graph, const std::string& name, const Options& options) {
  if (options.explain)
    fmt::print(stderr, "{}\n", graph.describe(name));
  else if (options.time)
    fmt::print(stderr, "{}: {}\n", name, driver::describe_times(graph.summary()));
}

void warn_of_cache(const Options& options) {
  if (const std::string problem = take_cache_problem(options); !problem.empty())
    TORCH_WARN("cxxinductor: plans and compiled kernels are not kept for the next process: ", problem);
}

}  // namespace cxxinductor::torch_bridge
