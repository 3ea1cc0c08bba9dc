// The pipeline as a table of stages, and the one runner of any stretch of it.
//
// compile.h, cxxi-opt, golden files, fuzzers and tests run stages through this header. A stage takes a form and makes a form; what passes
// from stage to stage beside it (missed fusions, say) is in PipelineState, and the plan is the same without it. The runner times each stage, verifies
// forms (option verify), asks whether to stop, and hands the form after each stage to an observer.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver/form.h"
#include "driver/stage_timer.h"
#include "driver/text_passes.h"
#include "frontend/import_environment.h"
#include "ir/target.h"
#include "model/schema.h"
#include "passes/graph/split_const_graph.h"
#include "passes/pass_manager.h"
#include "schedule/schedule.h"
#include "support/interrupt.h"
#include "support/options.h"

namespace cxxinductor::driver {

// Receives the form after the stage of this name.
using StageObserver = std::function<void(std::string_view stage, const Form& form)>;

// What the caller of a run gives.
struct PipelineInputs {
  Targets targets;  // of all devices that the graph's values are on
  Options options;
  // Positions of inputs that a caller that runs the plan in parts (runtime::PartialCall) has later than the others: what does not need
  // them is kept apart from what does.
  std::vector<uint32_t> late_inputs;
  const model::SchemaSource* schemas = nullptr;  // outlives the run; stages on calls need it
  frontend::ImportEnvironment environment;       // of import
  TextPasses text_passes;                        // run after their stages
  bool keep_texts = false;                       // fills PipelineState::texts
  InterruptCheck interrupted;                    // asked before each stage
  StageObserver observer;                        // may be empty
  StageTimer* timer = nullptr;                   // receives the times of stages and passes; outlives the run
};

// What the stage fit-memory plans again from.
struct SourceGraphs {
  std::optional<graph::Graph> imported;  // before the graph passes
  std::optional<graph::Graph> lowered;   // after them
};

struct PipelineState {
  PipelineInputs inputs;
  Form form;
  schedule::LiveRangeLimit live_range_limit;       // of the stage fuse
  schedule::FusionCount fusions;                   // of the stage fuse
  std::vector<plan::MissedFusion> missed_fusions;  // from fuse to merge-kernels
  std::map<std::string, size_t> region_times;      // of select-kernels, by which merge-kernels names them
  std::optional<passes::ConstGraph> const_graph;   // what const-graph split off
  std::vector<passes::PassTime> graph_passes;      // that changed the graph, in their order
  std::vector<passes::PassTime> loops_passes;      // that changed the regions, after them
  std::map<std::string, std::string> texts;        // of the form after each stage, by the stage's name, and after each text pass: "STAGE+NAME"
  SourceGraphs graphs;                             // as far as the run has come by them; none after fit-memory
};

struct Stage {
  std::string_view name, doc;  // doc: one line
  FormKind takes, makes;
  bool (*function)(PipelineState& state);     // whether it changed the form
  bool passes_of_users = false;               // may follow on it (text_passes.h)
  bool (*enabled)(const Options&) = nullptr;  // options may skip the stage; null: none can
};

// All stages, from calls to source, in their order.
std::span<const Stage> stage_table();
// `first` to `last`; UserError lists the names for an unknown one, or if they are in the wrong order.
std::span<const Stage> stages_between(std::string_view first, std::string_view last);
// From the first stage that takes the kind of form.
std::span<const Stage> stages_from(FormKind kind, std::string_view last);

// Runs them in order. Forms are verified where one is complete: after the last stage that makes or changes a kind of form, and after
// lowering, unless it is the form that was verified last; with verify=each after all stages that change it, with verify=off never.
// UserError if the form is not what a stage takes.
void run_stages(std::span<const Stage> stages, PipelineState& state);

// The plan that the shipped pipeline makes of a form first, whatever memory it holds: that of the stage merge-kernels.
plan::Plan plan_of(Form form, const Targets& targets, const Options& options = {});

}  // namespace cxxinductor::driver
