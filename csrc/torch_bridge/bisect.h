// Bisection (driver/bisect.h) of what a reproducer folder holds, on this machine: library calls are answered by ATen on the CPU, kernels run
// where the graph's devices are.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "driver/bisect.h"
#include "support/options.h"
#include "torch_bridge/compiled_graph.h"

namespace cxxinductor::torch_bridge {

// Inputs for the text of calls or of a graph: normal numbers, integers 0 and 1, which index any table, in the sizes and strides that it
// states. sizes: of symbols, by name; the others get a small value in their range. UserError for an unknown symbol, Unsupported where an
// input is neither a tensor nor an integer.
std::vector<c10::IValue> reproducer_inputs(std::string_view text, const std::map<std::string, int64_t>& sizes, uint64_t seed);

// Compiles the text of calls or of a graph, which must come from someone the caller trusts. Falls back to ATen as compiles of calls do.
std::shared_ptr<CompiledGraph> compile_reproducer(std::string_view text, const Options& options);

struct ReproducerSettings {
  std::vector<c10::IValue> inputs;                           // one per input of the text
  bool against_eager = false;                                // the reference: what ATen makes of the calls; else the interpreter's meaning of the first form
  bool run_kernels = true;                                   // else forms alone are looked at
  Targets targets;                                           // none: this machine's
  std::function<std::string(const Options& options)> judge;  // as in driver::BisectRequest
  std::function<void(std::string_view line)> progress;
};

// UserError where against_eager is asked for the text of a graph.
driver::BisectReport bisect_reproducer(std::string_view text, const Options& options, ReproducerSettings settings);

}  // namespace cxxinductor::torch_bridge
