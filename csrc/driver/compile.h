// From a graph to an executable: the stages of stages.h, the cache of plans, and the kernels.
//
// This layer alone knows all the middle layers. It reads no environment and prints nothing: options come in, a report
// goes out, and the caller decides what the user sees.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/stages.h"
#include "frontend/call_reasons.h"
#include "ir/graph/graph.h"
#include "ir/plan/plan.h"
#include "runtime/executable.h"

namespace cxxinductor::runtime {
class DiskCache;
}

namespace cxxinductor::driver {

// What happened, for explain(), dumps and tests. Texts are filled when `Request::keep_texts` asks for them.
struct Report {
  std::vector<StageTime> times;
  std::map<std::string, double> pass_times;  // seconds by pass, of all its runs
  // Of the form after each stage that ran, by the stage's name, from import on; where fit-memory planned again, those of the plan it took.
  std::map<std::string, std::string> texts;
  struct KernelSource {
    std::string name;
    Device device;
    std::string text;  // of the variant compiled first; the templates that it calls are #include lines (codegen/templates.h)
  };
  std::vector<KernelSource> kernel_sources;
  std::vector<std::string> kernel_plans;  // for each of them: the plan of one launch (single_launch.h)
  std::string calls_text;                 // the model as calls, where the caller has it
  std::vector<std::string> externs;       // "aten::mm" once a call
  frontend::CallReasons extern_reasons;   // of each of them
  std::vector<std::string> collectives;   // model::CallGraph::collective_notes
  std::string missed_fusion_text;         // one line per pair of kernels
  std::vector<std::string> text_passes;   // "NAME (after STAGE)" of each that a user registered and that took part
  std::string settings_text;              // with what it was compiled: settings_text() of dump.h
  bool eager_numerics = true;
};

// Makes the kernels of a plan loadable; bound by the caller to caches, pools and libraries.
using ProviderFactory = std::function<std::shared_ptr<runtime::KernelProvider>(const plan::Plan& plan, const Targets& targets)>;

struct Request : PipelineInputs {
  graph::Graph graph;
  frontend::CallReasons call_reasons;  // of externs that the import made; others have those of call_reasons.h
  ProviderFactory make_provider;       // empty: the graph is planned, and there is no executable
  // Called before a graph is planned, since kernels are likely to be compiled then; may be empty.
  std::function<void(const Targets&)> before_planning;
  runtime::Host* host = nullptr;             // resolves the externs; outlives the executable
  runtime::DiskCache* plan_cache = nullptr;  // plans are kept here (plan_cache.h); null: every graph is planned
};

struct Compilation {
  std::shared_ptr<runtime::Executable> executable;
  Report report;
  // Where option freezing finds something to prepare: its outputs are what `executable` takes after the request's
  // inputs.
  struct ConstGraph {
    std::shared_ptr<runtime::Executable> executable;
    Report report;
    std::vector<uint32_t> inputs;  // of each of its inputs the position among the request's
  };
  std::optional<ConstGraph> const_graph;
};

// Throws Unsupported (fall back), UserError, InternalError or Interrupted.
Compilation compile(Request request);

// From the text of a plan that compile made for the same targets; the request's graph is not looked at. The text is verified, but not
// for memory safety: it must come from someone the caller trusts.
Compilation compile_plan(std::string_view text, Request request);

// Devices of the graph's values, the main one first: the GPU that is found first, else the CPU.
std::vector<Device> devices_of(const graph::Graph& graph);

}  // namespace cxxinductor::driver
