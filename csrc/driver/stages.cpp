#include "driver/stages.h"

#include <algorithm>
#include <chrono>

#include "codegen/source_text.h"
#include "driver/fit_memory.h"
#include "frontend/complex/lower_complex.h"
#include "frontend/import.h"
#include "ir/graph/memory.h"
#include "kernels/bodies.h"
#include "lowering/lower.h"
#include "model/eager_memory.h"
#include "support/error.h"

namespace cxxinductor::driver {
namespace {

template <class IR>
IR& form_of(PipelineState& state) {
  return std::get<IR>(state.form);
}

// Before the first change of a graph: passes may save memory that eager holds.
void measure_eager(PipelineState& state) {
  graph::Graph& graph = form_of<graph::Graph>(state);
  if (graph.eager_peaks.empty()) graph.eager_peaks = graph::eager_peaks(graph);
}

// The passes that changed the form.
std::vector<passes::PassTime> note_passes(PipelineState& state, std::vector<passes::PassTime> ran) {
  if (state.inputs.timer != nullptr)
    for (const passes::PassTime& pass : ran) state.inputs.timer->pass_times[std::string(pass.name)] += pass.seconds;
  std::erase_if(ran, [](const passes::PassTime& pass) { return !pass.changed; });
  return ran;
}

bool import(PipelineState& state) {
  const PipelineInputs& inputs = state.inputs;
  CXXI_CHECK(inputs.schemas, "the stage import needs schemas");
  model::CallGraph& calls = form_of<model::CallGraph>(state);
  std::map<Device, int64_t> eager_peaks = model::eager_peaks(calls);
  graph::Graph graph = frontend::import_graph(frontend::lower_complex(std::move(calls), *inputs.schemas), *inputs.schemas, inputs.environment);
  graph.eager_peaks = std::move(eager_peaks);
  state.form = std::move(graph);
  return true;
}

bool run_graph_passes(PipelineState& state) {
  measure_eager(state);
  state.graphs.imported = form_of<graph::Graph>(state);
  state.graph_passes = note_passes(state, passes::run_graph_pipeline(form_of<graph::Graph>(state), state.inputs.options));
  return !state.graph_passes.empty();
}

bool split_const_graph(PipelineState& state) {
  state.const_graph = passes::split_const_graph(form_of<graph::Graph>(state));
  return state.const_graph.has_value();
}

bool lower(PipelineState& state) {
  measure_eager(state);
  state.graphs.lowered = std::move(form_of<graph::Graph>(state));
  state.form = lowering::lower(*state.graphs.lowered);
  return true;
}

bool fuse(PipelineState& state) {
  state.form = schedule::fuse(std::move(form_of<loops::Program>(state)), state.inputs.targets, state.inputs.options, &state.missed_fusions,
                              state.live_range_limit, state.inputs.late_inputs, &state.fusions);
  return true;
}

bool run_loops_passes(PipelineState& state) {
  const Options& options = state.inputs.options;
  state.loops_passes = note_passes(state, passes::run_loops_pipeline(form_of<loops::Program>(state), options, state.graph_passes.size()));
  return !state.loops_passes.empty();
}

bool select_kernels(PipelineState& state) {
  schedule::SelectedKernels selected =
      schedule::select_kernels(std::move(form_of<loops::Program>(state)), state.inputs.targets, std::move(state.missed_fusions));
  state.form = std::move(selected.plan);
  state.region_times = std::move(selected.region_times);
  state.missed_fusions = std::move(selected.missed_fusions);
  return true;
}

bool place_memory(PipelineState& state) {
  state.form = schedule::place_memory(std::move(form_of<plan::Plan>(state)));
  return true;
}

bool merge_kernels(PipelineState& state) {
  plan::Plan& plan = form_of<plan::Plan>(state);
  const bool merged = schedule::merge_kernels(plan, state.inputs.targets, state.inputs.options);
  plan.missed_fusions = schedule::name_kernels(std::exchange(state.missed_fusions, {}), plan, std::exchange(state.region_times, {}));
  return merged;
}

// A unit for each device that has kernels.
bool emit_source(PipelineState& state) {
  const plan::Plan& plan = form_of<plan::Plan>(state);
  std::string text;
  for (Device device : plan.devices) {
    std::vector<const plan::Kernel*> kernels;
    for (const plan::Kernel& kernel : plan.kernels)
      if (kernel.device == device) kernels.push_back(&kernel);
    if (!kernels.empty() || device == plan.devices.front()) text += codegen::unit_text(kernels, state.inputs.targets.of(device), plan.origins);
  }
  state.form = std::move(text);
  return true;
}

constexpr bool passes_follow = true;
constexpr Stage stages[] = {
    {"import", "read calls: explicit promotion, views as index maps, writes as new values", FormKind::Calls, FormKind::Graph, import},
    {"graph-passes", "simplify the graph and prepare it for libraries", FormKind::Graph, FormKind::Graph, run_graph_passes, passes_follow},
    // After the passes, which make more of what can be computed once. With check, each call is checked as a whole.
    {"const-graph", "split off what depends on frozen inputs alone", FormKind::Graph, FormKind::Graph, split_const_graph, !passes_follow,
     [](const Options& options) { return options.freezing && options.check == "off"; }},
    {"lower", "make one region per node that is not a view", FormKind::Graph, FormKind::Loops, lower, passes_follow},
    {"fuse", "merge regions", FormKind::Loops, FormKind::Loops, fuse, passes_follow, [](const Options& options) { return options.fusion; }},
    // After fusion, which substitutes what a region loads: more is known about each statement.
    {"loops-passes", "simplify the statements of regions", FormKind::Loops, FormKind::Loops, run_loops_passes, passes_follow},
    {"select-kernels", "order steps and map regions to kernels, each buffer being allocated by itself", FormKind::Loops, FormKind::Plan, select_kernels},
    {"place-memory", "place buffers in arenas, or on the memory of others that die", FormKind::Plan, FormKind::Plan, place_memory},
    // After memory, for which kernels may become different: some of their parameters are one.
    {"merge-kernels", "make one kernel of those that differ in sizes alone", FormKind::Plan, FormKind::Plan, merge_kernels},
    {"fit-memory", "plan again with less fusion or fewer passes where the plan holds more memory than eager", FormKind::Plan, FormKind::Plan, fit_memory},
    {"source", "write the source of all kernels, those of a device as one unit", FormKind::Plan, FormKind::Text, emit_source},
};

const Stage* find_stage(std::string_view name) {
  const Stage* found = std::ranges::find(stages, name, &Stage::name);
  if (found != std::end(stages)) return found;
  std::vector<std::string_view> names;
  for (const Stage& stage : stages) names.push_back(stage.name);
  throw_user_error("expected the name of a stage, found '{}'; known are {}", name, fmt::join(names, ", "));
}

bool runs(const Stage& stage, const Options& options) { return !stage.enabled || stage.enabled(options); }

// The passes of users that follow on the stage. Whether they changed the form, which they leave verified.
bool run_text_passes(std::string_view stage, PipelineState& state, StageTimer& timer) {
  bool changed = false;
  for (const std::shared_ptr<const TextPass>& pass : state.inputs.text_passes) {
    if (pass->stage != stage) continue;
    stop_if(state.inputs.interrupted);
    const auto start = std::chrono::steady_clock::now();
    changed |= run_text_pass(*pass, state.form);
    timer.pass_times[pass->name] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (state.inputs.keep_texts) state.texts[fmt::format("{}+{}", stage, pass->name)] = print(state.form);
  }
  return changed;
}

// Whether a later stage changes the form that this stage left: it is verified then. What the importer and lowering make is verified all the
// same, since passes and fusion would hide where a mistake came from.
bool changes_again(std::span<const Stage> rest, const Stage& stage, const Options& options) {
  const auto next = std::ranges::find_if(rest, [&](const Stage& later) { return runs(later, options); });
  const bool kept = stage.takes == stage.makes || stage.makes == FormKind::Plan;
  return kept && next != rest.end() && next->takes == next->makes;
}

}  // namespace

std::span<const Stage> stage_table() { return stages; }

std::span<const Stage> stages_between(std::string_view first, std::string_view last) {
  const Stage *begin = find_stage(first), *end = find_stage(last);
  if (begin > end) throw_user_error("expected a stage from {} on, found '{}', which comes before it", first, last);
  return {begin, end + 1};
}

std::span<const Stage> stages_from(FormKind kind, std::string_view last) {
  const Stage* first = std::ranges::find(stages, kind, &Stage::takes);
  CXXI_CHECK(first != std::end(stages), "no stage takes {}", to_string(kind));
  return stages_between(first->name, last);
}

void run_stages(std::span<const Stage> stages, PipelineState& state) {
  StageTimer unread;
  StageTimer& timer = state.inputs.timer ? *state.inputs.timer : unread;
  bool verified = false;  // the form as it is now
  for (size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    const PipelineInputs& inputs = state.inputs;
    if (!runs(stage, inputs.options)) {
      if (kind_of(state.form) == stage.makes) verified |= run_text_passes(stage.name, state, timer);  // as they follow it
      continue;
    }
    if (kind_of(state.form) != stage.takes)
      throw_user_error("stage {}: expected {}, found {}", stage.name, to_string(stage.takes), to_string(kind_of(state.form)));
    stop_if(inputs.interrupted);
    const bool changed = timer.measure(std::string(stage.name), [&] { return stage.function(state); });
    verified &= !changed;
    const bool is_boundary = !changes_again(stages.subspan(i + 1), stage, inputs.options);
    if (inputs.options.verify == "each" ? changed : inputs.options.verify != "off" && is_boundary && !verified) {
      timer.measure(fmt::format("verify {}", stage.name), [&] {
        verify_or_throw(state.form, stage.name);
        if (const auto* plan = std::get_if<plan::Plan>(&state.form); plan && inputs.options.verify == "each")
          kernels::verify_bodies_or_throw(*plan, stage.name);
      });
      verified = true;
    }
    if (inputs.keep_texts) state.texts[std::string(stage.name)] = print(state.form);
    verified |= run_text_passes(stage.name, state, timer);
    if (inputs.observer) inputs.observer(stage.name, state.form);
  }
}

plan::Plan plan_of(Form form, const Targets& targets, const Options& options) {
  PipelineState state{.inputs = {.targets = targets, .options = options}, .form = std::move(form)};
  run_stages(stages_from(kind_of(state.form), "merge-kernels"), state);
  return std::get<plan::Plan>(std::move(state.form));
}

}  // namespace cxxinductor::driver
